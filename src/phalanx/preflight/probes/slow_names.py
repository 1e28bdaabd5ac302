"""Look-ups of names that take long: a name server that does not answer holds up every one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts, one_per_network
from phalanx.preflight.options import CheckOptions

_SLOW_S = 1.0


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Only what was answered at last, or not at all: a name that does not exist is another matter."""
    found: dict[str, list[tuple[float, str, str]]] = {}
    for one in one_per_network(all_facts):
        asked = one.section("names").get("asked", {})
        slow = {name: told for name, told in asked.items() if float(told.get("seconds") or 0.0) > _SLOW_S}
        if not slow or len(slow) < len([name for name in asked if not _is_address(name)]):
            continue  # some names are answered at once: the servers are well
        name, told = max(slow.items(), key=lambda item: float(item[1]["seconds"]))
        servers = ", ".join(one.section("names").get("servers", ())[:3])
        found.setdefault(servers, []).append((float(told["seconds"]), name, one.label))
    for servers, slow_hosts in found.items():
        seconds, name, _ = max(slow_hosts)
        labels = tuple(label for _, _, label in slow_hosts)
        yield observe("name-server-slow", labels, name=name, seconds=round(seconds, 1), servers=servers or None)


def _is_address(name: str) -> bool:
    return name.replace(".", "").isdigit() or ":" in name
