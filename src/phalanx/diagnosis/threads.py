"""Threads that die while the rank they work for goes on: what fed the training is gone, and some steps later nothing is left to train on.

Exception in thread Thread-1 (load_rows):
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner
    self.run()
  File "/home/user/train.py", line 9, in load_rows
    q.put(parse(row))
ValueError: could not convert string to float: ''
step 25 loss 0.0113
step 26 loss 0.0108

Python prints such an exception and lets the process live. The rank then waits for its queue for ever, and says nothing of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phalanx.model import Event, EventKind
from phalanx.sources import FileSurvey
from phalanx.sources.survey import RankSurvey

if TYPE_CHECKING:
    from phalanx.diagnosis.history import History

_PUTS = re.compile(r"\.put(?:_nowait)?\(|\bqueue\b|\benqueue", re.I)
_FEEDS = re.compile(
    r"load|read(?!y)|fetch|feed|fill|produc|batch|sample|shard|decod|stream|pin_memory|ingest|augment", re.I
)
_LEFT = 16  # steps that one rank can still make with what stands in its queue


def is_of_thread(event: Event) -> bool:
    """Whether an exception ended a thread beside the main one, as the interpreter prints it."""
    first = event.frames[0] if event.frames else None
    return first is not None and first.path.endswith("threading.py") and first.function.endswith("_bootstrap_inner")


def is_feeding(event: Event) -> bool:
    """Whether what a thread did, or is called after, is to bring data."""
    frames = [frame for frame in event.frames if not frame.path.endswith("threading.py")]
    return is_of_thread(event) and any(_PUTS.search(frame.source) or _FEEDS.search(frame.function) for frame in frames)


def is_missed(event: Event, file: FileSurvey, history: History) -> bool | None:
    """Whether the job stood still for want of the thread that this exception ended; None where nothing tells, or it was no such thread."""
    if not is_of_thread(event):
        return None
    if is_feeding(event) and _starved_by(event, file, history):
        return True
    # No process ended with an error, gave up waiting or was stopped, and no main thread raised: whoever lost a thread lived on.
    raised = any(not is_of_thread(one) for one in history.exceptions)
    told = any(one.kind in (EventKind.TIMEOUT, EventKind.STALL, EventKind.STACK) for one in history.seen.events)
    failed = raised or told or history.own_deaths or any(history.exit_codes.values())
    return None if failed else False


def _starved_by(event: Event, file: FileSurvey, history: History) -> bool:
    """Whether the training came to an end a few reports later, without saying so.

    A thread that was started again is not missed. Where the rank tells of its steps in another file, nothing tells their order.
    """
    speakers = [entry for entry in file.ranks.values() if entry.last_progress is not None]
    if not speakers and any(_trains_in(other, event) for other in history.seen.files):
        return False
    own = file.ranks.get(event.rank) if event.rank is not None else None
    followed = [own] if own is not None else speakers
    if any(_ended_well(entry, event.line) for entry in followed):
        return False
    last = max((entry.last_progress or 0 for entry in followed), default=0)
    is_soon = last - event.line <= _LEFT * len(speakers)
    return is_soon and all(_steps_after(entry, event.line) <= _LEFT for entry in followed)


def _trains_in(file: FileSurvey, event: Event) -> bool:
    """Errors and output are often kept apart."""
    entry = file.ranks.get(event.rank) if event.rank is not None else None
    return entry is not None and entry.last_progress is not None


def _steps_after(entry: RankSurvey, line: int) -> int:
    """How many steps a rank still told of: not every one is printed."""
    readings = entry.metrics.of("loss") if entry.metrics is not None else []
    before = [reading.at for reading in readings if reading.line < line] or [reading.at for reading in readings[:1]]
    epoch, step = before[-1] if before else (-1, -1)
    last = readings[-1].at if readings else (-1, -1)
    return last[1] - step if last[0] == epoch and min(step, last[1]) >= 0 else 0


def _ended_well(entry: RankSurvey, line: int) -> bool:
    """It says that it is done, or speaks after its last step of something that is no trouble."""
    last = entry.last_progress or 0
    return (entry.finished or 0) > line or entry.last_ordinary > max(last, line)
