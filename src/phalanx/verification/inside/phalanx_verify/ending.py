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
    attempt = os.path.dirname(os.path.dirname(settings.folder))
    here = f"rank{settings.rank}"
    others = [settings.folder.replace(here, f"rank{rank}") for rank in range(settings.size)]
    deadline = time.monotonic() + _PATIENCE
    while attempt and time.monotonic() < deadline:
        if all(os.path.exists(os.path.join(folder, "enough")) for folder in others):
            break
        time.sleep(0.02)
    if settings.kill:
        os.kill(os.getpid(), signal.SIGKILL)
    raise Enough(0)
