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

from phalanx.model import Event
from phalanx.sources import FileSurvey
from phalanx.sources.survey import RankSurvey

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


def starved_by(event: Event, file: FileSurvey) -> bool:
    """Whether it ended the thread that fed the training, which came to an end a few reports later without saying so.

    A thread that writes metrics or keeps a connection is not missed, and one that was started again is not, either.
    """
    if not is_feeding(event):
        return False
    speakers = [entry for entry in file.ranks.values() if entry.last_progress is not None]
    own = file.ranks.get(event.rank) if event.rank is not None else None
    followed = [own] if own is not None else speakers
    if any(_ended_well(entry, event.line) for entry in followed):
        return False
    last = max((entry.last_progress or 0 for entry in followed), default=0)
    return last - event.line <= _LEFT * len(speakers) and all(
        _steps_after(entry, event.line) <= _LEFT for entry in followed
    )


def _steps_after(entry: RankSurvey, line: int) -> int:
    """How many steps a rank still told of: not every one is printed."""
    readings = entry.course.of("loss") if entry.course is not None else []
    before = [reading.at for reading in readings if reading.line < line] or [reading.at for reading in readings[:1]]
    epoch, step = before[-1] if before else (-1, -1)
    last = readings[-1].at if readings else (-1, -1)
    return last[1] - step if last[0] == epoch and min(step, last[1]) >= 0 else 0


def _ended_well(entry: RankSurvey, line: int) -> bool:
    """It says that it is done, or speaks after its last step of something that is no trouble."""
    last = entry.last_progress or 0
    return (entry.finished or 0) > line or entry.last_ordinary > max(last, line)
