"""Clocks: hosts whose time differs by more than torchrun's rendezvous and people reading logs can bear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts, one_per_network
from phalanx.preflight.options import CheckOptions

_APART_S = 5.0


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Against the median of all; what the way there took is taken off first."""
    told = [one for one in one_per_network(all_facts) if one.clock_ahead is not None]
    if len(told) < 2:
        return
    middle = median(one.clock_ahead or 0.0 for one in told)
    for one in told:
        apart = (one.clock_ahead or 0.0) - middle
        if abs(apart) - one.clock_error > _APART_S / 2 if len(told) == 2 else abs(apart) - one.clock_error > _APART_S:
            if len(told) == 2 and apart < 0:
                continue  # of two clocks nobody knows which is wrong: said once
            whole = abs(apart) * (2 if len(told) == 2 else 1)
            other = next(peer for peer in told if peer is not one)
            against = other.label if len(told) == 2 else "the others"
            yield observe(
                "clocks-apart",
                () if len(told) == 2 else (one.label,),
                tuple(peer.label for peer in told) if len(told) == 2 else (),
                clock=one.label,
                seconds=round(whole, 1),
                ahead=apart > 0,
                behind=apart <= 0,
                others=against,
            )
