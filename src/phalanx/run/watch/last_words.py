"""Reads where in the user's code a rank failed from the traceback that it printed last, and under which condition on the rank."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from phalanx.model import Frame
from phalanx.model.facts import make_fact
from phalanx.run.observer import Observation
from phalanx.run.watch.partners import SENDS, is_point_to_point, left_out_half
from phalanx.run.watch.recorder import GroupState
from phalanx.sources.rank_conditions import condition_above
from phalanx.sources.readers.stacks import THREAD, frame_of
from phalanx.sources.readers.tracebacks import FRAME, TRIGGERS

_ONE_SHAPE = re.compile(r"\[(\[[\d, ]*\])\] ")
_MARK = re.compile(r"^\[rank\d+\]: ?")
_LONGEST = 200


def call_of(file: Path) -> dict[str, Any]:
    """`call`: the collective in which the rank failed, as the watch inside wrote it down; empty if it did not."""
    try:
        loaded = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {"call": {str(key): str(value) for key, value in loaded.items()}} if isinstance(loaded, dict) else {}


def module_of(file: Path, rank: int) -> list[Observation]:
    """Which file the module is that lacks a name, as the watch inside wrote it down."""
    try:
        loaded = json.loads(file.read_text(encoding="utf-8"))
        fields = {name: str(loaded[name]) for name in ("module", "file", "name")}
    except (OSError, ValueError, KeyError, TypeError):
        return []
    fact = make_fact("rank.lacks-name", fields, ranks=(rank,), source="watch")
    text = f"rank {rank} imported {fields['module']} from {fields['file']}, which has no {fields['name']}"
    return [Observation("module", (rank,), text, fields, (fact,))]


def call_waited_in(recorder: Mapping[str, GroupState] | None) -> dict[str, Any]:
    """`call`: the shape of the tensor in the one collective that a rank had not got out of when it was ended; empty if that is not known."""
    waiting = [state.waits_in for state in (recorder or {}).values() if state.waits_in is not None]
    shape = _ONE_SHAPE.match(waiting[0].shape) if len(waiting) == 1 else None
    return {"call": {"shape": shape[1]}} if shape is not None else {}


def failure_of(last: Iterable[bytes]) -> dict[str, Any]:
    """`failed_at`, the innermost line of the user's, `error`, the exception's words, and `condition` if it stands under one; empty without a traceback, or a stack
    that faulthandler wrote: Gloo aborts a rank from a thread of its own, whatever the script would do with an exception.

    Told while the script is at hand: who reads the bundle elsewhere has only the lines of the traceback.
    """
    last = list(last)
    crash = _crash_of_main_thread(last)
    frames = crash or last_traceback(last)
    mine = [frame for frame in frames if frame.is_user_code]
    if not mine:
        return {}
    found: dict[str, Any] = {"failed_at": mine[-1].place}
    if not crash and (error := _exception_of(last)):
        found["error"] = error
    below = [frame.function for frame in frames if "torch/distributed/" in frame.path]
    call = next((name for name in below if is_point_to_point(name)), "")
    if call and (left := left_out_half(mine[-1], call in SENDS)):
        found["left_out"] = left
    if (under := condition_above(tuple(frames))) is not None:
        found |= {"condition": under[0], "condition_at": under[1].place}
    return found


def _texts(last: Iterable[bytes]) -> Iterator[str]:
    return (_MARK.sub("", line.decode("utf-8", "replace")).rstrip() for line in last)


def _crash_of_main_thread(last: Iterable[bytes]) -> list[Frame]:
    """Of the stacks that faulthandler wrote of all threads, the one that runs the script; outermost frame first."""
    frames: list[Frame] | None = None
    found: list[Frame] = []
    for text in _texts(last):
        if THREAD.match(text):
            frames = []
        elif frames is not None and (frame := frame_of(text)) is not None:
            frames.insert(0, frame)
            if frame.function == "<module>" and "runpy" not in frame.file:
                found = list(frames)
    return found


def last_traceback(last: Iterable[bytes]) -> list[Frame]:
    """Outermost frame first. Of chained exceptions the last is the one that ended the rank."""
    frames: list[Frame] = []
    for text in _texts(last):
        if TRIGGERS[0] in text:
            frames = []
        elif (match := FRAME.match(text)) is not None:
            frames.append(Frame(match["file"], int(match["line"]), match["function"] or "<module>"))
    return frames


def _exception_of(last: Iterable[bytes]) -> str:
    """The line behind the last frame of a traceback that is not indented: what was raised, and its message's first line."""
    found, is_inside = "", False
    for text in _texts(last):
        if TRIGGERS[0] in text:
            found, is_inside = "", True
        elif is_inside and text[:1].strip():
            found, is_inside = text.strip()[:_LONGEST], False
    return found
