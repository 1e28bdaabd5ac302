"""Ends a rank early, as if its script had come to its end."""

from __future__ import annotations

import os
import signal
import time

from .settings import Settings

_PATIENCE = 10.0  # seconds for the peers to come as far


class Enough(SystemExit):
    """Passes `except Exception`; `finally` blocks, context managers and exit handlers of the script run."""


def leave(settings: Settings) -> None:
    """Say that this rank is done, wait a little for its peers, and end it: well, or as a cluster would that takes the node away."""
    mark = os.path.join(settings.folder, "enough")
    with open(mark, "w", encoding="utf-8"):
        pass
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and _come(settings) < settings.size:
        time.sleep(0.02)
    if settings.kill:
        os.kill(os.getpid(), signal.SIGKILL)
    raise Enough(0)


def _come(settings: Settings) -> int:
    """How many ranks are done."""
    if settings.spawns:
        beside = os.path.dirname(settings.folder)
        folders = [os.path.join(beside, name) for name in os.listdir(beside)]
    else:
        here = f"rank{settings.rank}"
        folders = [settings.folder.replace(here, f"rank{rank}") for rank in range(settings.size)]
    return sum(os.path.exists(os.path.join(folder, "enough")) for folder in folders)
