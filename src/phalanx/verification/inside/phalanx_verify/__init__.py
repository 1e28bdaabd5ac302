"""What runs inside a rank under `phalanx verify`: sees models, optimizers, gradients, collectives and data, and writes fingerprints.

Needs PyTorch only where the script imports it, and phalanx_record beside it on the path. The settings are one JSON object in
PHALANX_VERIFY.
"""

from __future__ import annotations

import json
import os
from typing import Any

from phalanx_record.arrival import when_imported

from . import lines
from .settings import Settings


def start(told: str) -> bool:
    """Make ready: what is watched is hooked when the script has imported it. True if that is left to processes that this one starts."""
    settings = json.loads(told)
    if settings.get("spawns") == "parent":
        _hand_on(settings)
        return True
    if settings.get("spawns") == "child":
        settings["folder"] = os.path.join(settings["folder"], f"spawned-{os.getpid()}")
    _observe(Settings.from_json(settings))
    return False


def _observe(settings: Settings) -> None:
    lines.begin(settings.script)
    from .observer import Observer

    observer = Observer(settings)
    for module, act in observer.hooks().items():
        when_imported(module, act)


def _hand_on(settings: dict[str, Any]) -> None:
    """The script starts its ranks itself: each of them observes itself, whether it is started anew or forked."""
    child = settings | {"spawns": "child", "size": settings["size_wanted"]}
    os.environ["PHALANX_VERIFY"] = json.dumps(child)

    def forked() -> None:
        os.environ.pop("PHALANX_VERIFY", None)  # its own children are no ranks
        if not _begun:
            _begun.append(True)
            start(json.dumps(child))

    os.register_at_fork(after_in_child=forked)


_begun: list[bool] = []  # in this process, or in the one that it was forked from
