"""Where in the user's own code a call comes from, and what the user calls a tensor there."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = tuple(
    os.path.dirname(os.path.abspath(path)) for path in (os.__file__,)
)  # the standard library; installed packages lie below it or in another site-packages
_is_users: dict[CodeType, bool] = {}
_ways: dict[str, list[tuple[int, CodeType | None]]] = {}
_MOST_WAYS = 4
_lines: dict[tuple[CodeType, int], str] = {}  # by code and instruction


def _is_users_own(code: CodeType) -> bool:
    known = _is_users.get(code)
    if known is None:
        name = code.co_filename
        known = not (
            name.startswith(("<", _HERE))
            or "site-packages" in name
            or "dist-packages" in name
            or name.startswith(_LIBRARIES)
        )
        _is_users[code] = known
    return known


def users_frame() -> FrameType | None:
    """The innermost frame of this thread that is the user's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_users_own(frame.f_code):
        frame = frame.f_back
    return frame


def way_to_user() -> list[tuple[CodeType, bool]]:
    """The code of every frame on the way to the innermost one that is the user's, and whether it is that one."""
    frame: FrameType | None = sys._getframe(1)
    found = []
    while frame is not None:
        is_users = _is_users_own(frame.f_code)
        found.append((frame.f_code, is_users))
        if is_users:
            break
        frame = frame.f_back
    return found


def users_line(folder: str, kind: str = "") -> str:
    """`train.py:25`, or nothing where no frame is the user's. `kind` tells apart who asks: the same ways are come again."""
    frame = _guessed(kind)
    if frame is None:
        frame = _searched(kind)
    if frame is None:
        return ""
    place = (frame.f_code, frame.f_lasti)
    known = _lines.get(place)
    if known is None:
        known = _lines[place] = f"{short_path(frame.f_code.co_filename, folder)}:{frame.f_lineno}"
    return known


def _searched(kind: str) -> FrameType | None:
    """From frame to frame; the way is remembered: how far it was, and whom the user's function had called."""
    frame, before, depth = sys._getframe(1), None, 1
    while not _is_users_own(frame.f_code):
        if frame.f_back is None:
            return None
        before, frame, depth = frame.f_code, frame.f_back, depth + 1
    ways = _ways.setdefault(kind, [])
    ways.insert(0, (depth, before))
    del ways[_MOST_WAYS:]
    return frame


def _guessed(kind: str) -> FrameType | None:
    """By the ways that led to the user before: below FSDP there are dozens of frames, and Python makes an object of each that is looked at."""
    for depth, before in _ways.get(kind, ()):
        try:
            if sys._getframe(depth - 1).f_code is before:
                frame = sys._getframe(depth)
                if _is_users_own(frame.f_code):
                    return frame
        except ValueError:  # fewer frames than that
            pass
    return None


def short_path(path: str, folder: str) -> str:
    """Relative to the script's folder where it lies below it."""
    whole = os.path.abspath(path)
    if folder and whole.startswith(folder + os.sep):
        return whole[len(folder) + 1 :]
    return path


def name_at_call(tensor: Any) -> str:
    """What the user's function calls this tensor: a local name, or `name.grad`; nothing if it is not seen there."""
    frame = users_frame()
    if frame is None:
        return ""
    for name, value in {**frame.f_globals, **frame.f_locals}.items():
        if value is tensor:
            return name
        if getattr(value, "is_leaf", False) and getattr(value, "grad", None) is tensor:
            return f"{name}.grad"
    return ""
