"""Phalanx: why a distributed training job failed, and what to change.

@phalanx.function(workers=4)
def train(config): ...

train(config)        # on four workers; every rank's result, in order
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phalanx.calls.call import Call, Status
    from phalanx.calls.checkpoints import attempt, checkpoints, last_checkpoint
    from phalanx.calls.decorator import Function, function
    from phalanx.calls.errors import CallCancelled, CannotStart, JobFailed, JobTimedOut, NotFinished, PhalanxError

from phalanx.recorded import checkpoint

__version__ = "0.1.0"
__all__ = [
    "Call",
    "CallCancelled",
    "CannotStart",
    "Function",
    "JobFailed",
    "JobTimedOut",
    "NotFinished",
    "PhalanxError",
    "Status",
    "__version__",
    "attempt",
    "checkpoint",
    "checkpoints",
    "function",
    "last_checkpoint",
]
# Imported when first asked for: every rank and every `phalanx diagnose` imports this file.
_FROM = {
    "Call": "call",
    "Status": "call",
    "Function": "decorator",
    "function": "decorator",
    **dict.fromkeys(("attempt", "checkpoints", "last_checkpoint"), "checkpoints"),
    **dict.fromkeys(
        ("CallCancelled", "CannotStart", "JobFailed", "JobTimedOut", "NotFinished", "PhalanxError"), "errors"
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module 'phalanx' has no attribute {name!r}")
    value = getattr(import_module(f"phalanx.calls.{_FROM[name]}"), name)
    globals()[name] = value
    return value
