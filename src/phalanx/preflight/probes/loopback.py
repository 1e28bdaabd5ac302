"""A host that does not reach itself: ranks that share it would never connect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts, one_per_network
from phalanx.preflight.options import CheckOptions


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """By what each host found when it called itself."""
    for one in one_per_network(all_facts):
        for address, told in one.section("loopback").items():
            if told != "ok":
                yield observe("loopback-filtered", (one.label,), address=address, error=str(told))
                break
