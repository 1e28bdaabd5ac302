"""How long reading may take: everything at first, then only how each file begins and ends, and at last nothing more.

What a failed job left behind can be larger than anybody's patience, by accident or because somebody made it so. The end of a
log tells most and its beginning tells what was started, so a verdict on these is worth having; what was left out is told.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from phalanx.model import Unchecked

WHOLE = 120.0  # seconds in which whole files are read, unless --time-limit says otherwise
_ENDS = 0.5  # of that time, on top of it, for the ends of what is left


class OutOfTimeError(OSError):
    """Nothing more is read; what was read counts."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Moments of the monotonic clock, which all processes of a machine share."""

    whole_until: float = float("inf")
    ends_until: float = float("inf")

    @classmethod
    def of(cls, seconds: float | None) -> Patience:
        """So many seconds from now on; None or 0 for no limit."""
        if not seconds:
            return cls()
        now = time.monotonic()
        return cls(now + seconds, now + seconds * (1 + _ENDS))

    @property
    def is_short(self) -> bool:
        """Only beginnings and ends are still read."""
        return time.monotonic() > self.whole_until

    @property
    def is_over(self) -> bool:
        """Nothing more is read."""
        return time.monotonic() > self.ends_until


UNLIMITED = Patience()


def left_out(what: str) -> Unchecked:
    """Tells what the time limit left out."""
    return Unchecked(what, "--time-limit 0, which reads everything, or the part of the log around the failure")


def middle_left_out(name: str, size: int) -> Unchecked:
    """Tells of a file of which only the beginning and the end were read."""
    return left_out(f"{name}: {size >> 20} MiB of its middle, left out when the time limit was over")


def never_opened(names: Sequence[str]) -> Unchecked:
    """Tells of files that nobody looked into."""
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return left_out(
        f"{len(names)} file{'s' if len(names) > 1 else ''} not opened when the time limit was over: {shown}"
    )
