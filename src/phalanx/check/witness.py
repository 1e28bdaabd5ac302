"""One party's facts, with the questions that probes ask of them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "HOROVOD_RANK", "SLURM_PROCID")


@dataclass(frozen=True)
class Witness:
    """What one party told. Not slotted: what is asked often is kept."""

    label: str
    host: str
    ranks: tuple[int, ...]
    facts: Mapping[str, Any]
    clock_ahead: float | None = None  # seconds that its clock is ahead of ours
    clock_error: float = 0.0  # by how much that may be wrong
    resolved: Mapping[str, Any] = field(default_factory=dict)  # the other parties' names, looked up here

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """The variables whose values were told; what NCCL reads from its files stands where the environment has nothing."""
        environment = self.section("environment")
        found: dict[str, str] = {}
        for written in reversed(list(environment.get("files", {}).values())):  # the system's file counts least
            found.update({name: value for name, value in written.items() if name.startswith("NCCL_")})
        return {**found, **environment.get("variables", {})}

    def variable(self, name: str) -> str | None:
        """One variable; None if it is not set."""
        return self.variables.get(name)

    def section(self, name: str) -> Mapping[str, Any]:
        """A section of the facts; empty if it is missing."""
        found = self.facts.get(name)
        return found if isinstance(found, Mapping) else {}

    @property
    def interfaces(self) -> Mapping[str, Mapping[str, Any]]:
        """By name; those that could not be looked at are no interfaces."""
        return self.section("interfaces")

    def addresses(self, *, loopback: bool = False) -> list[str]:
        """Own addresses without their lengths; link-local ones, which only hold on one link, are left out."""
        found = []
        for facts in self.interfaces.values():
            for written in facts["addresses"]:
                address = ipaddress.ip_interface(written).ip
                if (loopback or not address.is_loopback) and not address.is_link_local and facts["up"]:
                    found.append(str(address))
        return found

    def owns(self, address: str) -> bool:
        """Whether an address is this host's; every host owns all of 127."""
        try:
            wanted = ipaddress.ip_address(address)
        except ValueError:
            return False
        return wanted.is_loopback or any(
            ipaddress.ip_interface(written).ip == wanted
            for facts in self.interfaces.values()
            for written in facts["addresses"]
        )

    def lookup(self, name: str) -> Mapping[str, Any] | None:
        """What a name resolves to here; None if it was not asked."""
        asked: Mapping[str, Any] = self.section("names").get("asked", {})
        return asked.get(name) or self.resolved.get(name)

    @property
    def network(self) -> str:
        """Equal for parties that share one network stack."""
        who = self.section("who")
        return f"{who.get('boot')} {who.get('network')}"


def rank_of(variables: Mapping[str, str]) -> int | None:
    """The rank by whatever launcher's variable; None if there is none that reads as a number."""
    for name in _RANK:
        value = variables.get(name, "").strip()
        if value.isdigit():
            return int(value)
    return None


def one_per_network(witnesses: Iterable[Witness]) -> list[Witness]:
    """The first witness of each network stack: what is true of a host is said once."""
    found: dict[str, Witness] = {}
    for witness in witnesses:
        found.setdefault(witness.network, witness)
    return list(found.values())


def name_all(labels: Iterable[str]) -> str:
    """`node0`, `node0 and node1`, `node0, node1 and 3 more`."""
    names = list(dict.fromkeys(labels))
    if len(names) > 5:
        return f"{', '.join(names[:4])} and {len(names) - 4} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
