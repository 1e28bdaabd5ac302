"""What runs inside a rank under `phalanx verify`: sees models, optimizers, gradients, collectives and data, and writes fingerprints.

Needs PyTorch only where the script imports it, and phalanx_record beside it on the path. The settings are one JSON object in
PHALANX_VERIFY.
"""

from __future__ import annotations

import json

from phalanx_record.arrival import when_imported

from . import lines
from .settings import Settings


def start(told: str) -> None:
    """Make ready: what is watched is hooked when the script has imported it."""
    settings = Settings.from_json(json.loads(told))
    lines.begin(settings.script)
    from .observer import Observer

    observer = Observer(settings)
    for module, act in observer.hooks().items():
        when_imported(module, act)
