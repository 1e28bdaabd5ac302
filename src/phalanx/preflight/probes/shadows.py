"""Files that Python would import in place of an installed framework."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """On every host; the current folder is that of the job under a launcher."""
    for one in all_facts:
        for name, told in one.section("shadows").items():
            yield observe("framework-shadowed", (one.label,), name=name, file=told["file"], installed=told["installed"])
