"""What runs inside a rank: records its collectives, or answers them from a recording.

Needs PyTorch, TensorFlow or Horovod only where the script imports them, NumPy, and nothing else: it is loaded into
whatever environment the script runs in. The settings are one JSON object in PHALANX_RECORD.
"""

from __future__ import annotations

import json
import os
import sys

from .arrival import when_imported
from .chance import seed_at_start
from .settings import Settings

SCHEMA = "phalanx.record/1"


def start(told: str) -> None:
    """Make ready. While recording nothing may reach the script: a fault here means an unrecorded job."""
    settings = Settings.from_json(json.loads(told))
    if settings.replays:
        try:
            _start(settings)
        except Exception as error:
            # Python would report it and run the script: unprepared, for real, as one rank of several.
            print(f"phalanx: rank {settings.rank} cannot be replayed: {error}", file=sys.stderr, flush=True)
            os._exit(3)
        return
    try:
        _start(settings)
    except Exception as error:
        print(f"phalanx: rank {settings.rank} is not recorded: {type(error).__name__}: {error}", file=sys.stderr)


def _start(settings: Settings) -> None:
    seed_at_start(settings.seed, settings.rank)
    if settings.replays:
        from .playing import prepare
    else:
        from .recording import prepare
    for module, act in prepare(settings).items():
        when_imported(module, act)
