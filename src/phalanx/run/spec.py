"""A job as the user asked for it, on the command line, by the decorator or through Python: values only, so that it can travel to a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any


class OnStall(StrEnum):
    """What to do when the job makes no progress."""

    REPORT = "report"
    ABORT = "abort"
    DUMP = "dump"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What to run and how to treat it. A new option is a field here; every way to start a job carries it."""

    command: tuple[str, ...] = ()  # a script or program, and its arguments; empty for a function call
    size: int | None = None
    fewest: int | None = None  # ranks below which the job is not tried again after a node was lost
    is_module: bool = False
    is_program: bool = False  # given after `--`: not to be run by Python
    is_call: bool = False  # a function call; else a script or program
    framework: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(
        default_factory=dict, repr=False
    )  # variables whose values are never written down
    devices: str | None = None
    gpus: int | None = None  # for each rank
    roles: Mapping[str, int] = field(default_factory=dict)  # of TensorFlow's tasks
    virtual_devices: int = 0
    timeout: float | None = None
    max_restarts: int = 0
    on_stall: OnStall = OnStall.REPORT
    inside: bool = True
    grace: float = 5.0
    stall_after: float = 8.0
    stall_at_most: float = 600.0
    python: str | None = None  # the ranks' interpreter; the one that starts them if None

    def to_message(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> JobSpec:
        """The reverse. Raises TypeError or ValueError where the message is not of this release."""
        known = {one.name for one in fields(cls)}
        if unknown := set(message) - known:
            raise ValueError(f"the job has settings that this release does not know: {', '.join(sorted(unknown))}")
        return cls(**{**message, "command": tuple(message["command"]), "on_stall": OnStall(message["on_stall"])})
