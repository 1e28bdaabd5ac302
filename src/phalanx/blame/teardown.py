"""Tells the processes that ended by themselves from those that were taken down with the job.

What a process prints or returns while it is being taken down (a SIGTERM of the launcher, the abort that follows a watchdog's
announcement, finalizers, `terminate called`) explains nothing about the failure.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping
from dataclasses import dataclass

FROM_OUTSIDE = frozenset({-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP})
_LAUNCHER_PATIENCE = 10.0  # seconds: torchrun waits for 30 between SIGTERM and SIGKILL


@dataclass(frozen=True, slots=True)
class Exit:
    """A process' end as somebody reported it."""

    code: int
    at: float | None = None
    by: str = ""  # who ended it, where a supervisor says so


def own_endings(
    exits: Mapping[int, Exit],
    *,
    supervised: bool = False,
    waited: bool = False,
    announced: bool = False,
) -> frozenset[int]:
    """The ranks that ended by themselves, and not well.

    `supervised`: the reporter knows whom it ended itself. `waited`: ranks gave up waiting, so a SIGKILL is the clean-up
    after that. `announced`: a watchdog said that it takes processes down, so an abort is its doing. Several ranks that abort
    alike lost a peer: that is how communication libraries end a process.
    """
    if supervised:
        return frozenset(rank for rank, one in exits.items() if one.code != 0 and not one.by)
    all_alike = len(exits) > 1 and len({one.code for one in exits.values()}) == 1
    late = killed_by_launcher(exits)
    aborts = announced or sum(one.code == -signal.SIGABRT for one in exits.values()) > 1
    return frozenset(
        rank
        for rank, one in exits.items()
        if one.code != 0
        and one.code not in FROM_OUTSIDE
        and not (one.code == -signal.SIGKILL and (all_alike or waited or rank in late))
        and not (one.code == -signal.SIGABRT and aborts)
    )


def killed_by_launcher(exits: Mapping[int, Exit]) -> frozenset[int]:
    """Ranks killed long after another had failed by itself: the launcher asks the others to end, waits, and kills."""
    others = FROM_OUTSIDE | {0, -signal.SIGKILL}
    first = min((one.at for one in exits.values() if one.at is not None and one.code not in others), default=math.inf)
    return frozenset(
        rank
        for rank, one in exits.items()
        if one.code == -signal.SIGKILL and one.at is not None and one.at - first >= _LAUNCHER_PATIENCE
    )
