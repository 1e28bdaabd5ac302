"""Section `programs`: where this host's shell finds what mpirun has to start on it, and which of the files asked for are there."""

from __future__ import annotations

import os
import shutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .collect import Setting

_NAMES = ("mpirun", "orted", "prted")


def programs(setting: Setting) -> dict[str, Any]:
    """By name, the program in PATH; by path, whether it can be started."""
    path = setting.environment.get("PATH", "")
    found: dict[str, Any] = {name: shutil.which(name, path=path) for name in _NAMES}
    found["asked"] = {one: os.access(one, os.X_OK) for one in map(str, setting.listed("programs"))}
    return found


FACTS = {"programs": programs}
