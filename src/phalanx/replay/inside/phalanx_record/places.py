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


def users_line(folder: str) -> str:
    """`train.py:25`, or nothing where no frame is the user's."""
    frame = users_frame()
    if frame is None:
        return ""
    return f"{short_path(frame.f_code.co_filename, folder)}:{frame.f_lineno}"


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
