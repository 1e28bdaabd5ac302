"""Phalanx: why a distributed training job failed, and what to change.

report = phalanx.diagnose("logs/")      # what broke the job; also attach(pid), check("train.py"), verify("train.py")
print(report)

@phalanx.function(workers=4)
def train(config): ...

train(config)                           # on four workers; every rank's result, in order
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phalanx.api.report import Report
    from phalanx.api.verbs import attach, check, diagnose, verify
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
    "Report",
    "Status",
    "__version__",
    "attach",
    "attempt",
    "check",
    "checkpoint",
    "checkpoints",
    "diagnose",
    "function",
    "last_checkpoint",
    "verify",
]
# Imported when first asked for: every rank and every `phalanx diagnose` imports this file.
_FROM = {
    "Report": "api.report",
    **dict.fromkeys(("attach", "check", "diagnose", "verify"), "api.verbs"),
    "Call": "calls.call",
    "Status": "calls.call",
    "Function": "calls.decorator",
    "function": "calls.decorator",
    **dict.fromkeys(("attempt", "checkpoints", "last_checkpoint"), "calls.checkpoints"),
    **dict.fromkeys(
        ("CallCancelled", "CannotStart", "JobFailed", "JobTimedOut", "NotFinished", "PhalanxError"), "calls.errors"
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module 'phalanx' has no attribute {name!r}")
    value = getattr(import_module(f"phalanx.{_FROM[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names and nothing else: packages that happen to be loaded are not for users."""
    return sorted(__all__)
