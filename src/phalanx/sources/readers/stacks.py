"""Stacks of living ranks: faulthandler's dumps and py-spy's.

Current thread 0x00007f5c2b7fe740 (most recent call first):
  File "/home/user/train.py", line 88 in train
Process 4242: python train.py
Thread 4242 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2501)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind, Frame
from phalanx.sources.window import Window

TRIGGERS = ("(most recent call first):", '"MainThread"')

_FAULTHANDLER = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$')
_PY_SPY = re.compile(r"^\s+(?P<function>\S.*?) \((?P<file>[^():]+):(?P<line>\d+)\)$")
THREAD = re.compile(r"^\s*(?:Current thread|Thread) ")
_PROCESS = re.compile(r"^Process (?P<pid>\d+): ")


def read(window: Window) -> Iterator[Event]:
    """One event for the thread whose stack begins here; native C++ backtraces are left to the message they belong to."""
    if not THREAD.match(window.text):
        return
    frames = []
    for _, text in window.following(120):
        frame = frame_of(text)
        if frame is not None:
            frames.append(frame)
        elif not text[:1].isspace() or THREAD.match(text):
            break  # py-spy shows native frames and arguments between those of Python
    if frames:
        frames.reverse()
        named = next((match for text in window.preceding(4) if (match := _PROCESS.match(text))), None)
        data: dict[str, object] = {"pid": int(named["pid"])} if named else {}
        yield window.event(EventKind.STACK, "stack", text=f"in {frames[-1].function}", frames=tuple(frames), data=data)


def frame_of(text: str) -> Frame | None:
    """The frame that a line of either form shows."""
    match = _FAULTHANDLER.match(text) or _PY_SPY.match(text)
    return Frame(match["file"], int(match["line"]), match["function"]) if match else None
