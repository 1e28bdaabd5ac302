"""Where in the user's own code something happens."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STANDARD = os.path.dirname(os.path.abspath(os.__file__))
_is_users: dict[CodeType, bool] = {}
_folder = ""


def begin(folder: str) -> None:
    """Paths are told relative to this folder."""
    global _folder
    _folder = folder


def _is_users_own(code: CodeType) -> bool:
    known = _is_users.get(code)
    if known is None:
        name = code.co_filename
        inside = os.path.join("replay", "inside", "phalanx_record")
        known = _is_users[code] = not (
            name.startswith(("<", _OURS, _STANDARD))
            or "__autograph_generated_file" in name
            or "site-packages" in name
            or "dist-packages" in name
            or inside in name
        )
    return known


def line() -> str:
    """`train.py:25`, of the innermost frame that is the user's; empty if none is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_users_own(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return ""
    path = os.path.abspath(frame.f_code.co_filename)
    shown = path[len(_folder) + 1 :] if _folder and path.startswith(_folder + os.sep) else path
    return f"{shown}:{frame.f_lineno}"


def caller() -> str:
    """The package that calls: `lightning`, `transformers`, …; for what frameworks do by themselves."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if not frame.f_code.co_filename.startswith(_OURS) and package != "torch":
            return package
        frame = frame.f_back
    return ""
