"""One target's facts, with the questions that probes ask of them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from phalanx.preflight.agent.names import host_of

# Interfaces that container engines and hypervisors make for inside of the host: their addresses are the same everywhere and lead nowhere.
INNER = (
    "docker", "br-", "virbr", "cni", "podman", "lxc", "lxdbr", "vmnet", "vboxnet", "veth", "cali", "flannel", "kube", "nodelocaldns", "tunl",
    "tailscale", "dummy",
)  # fmt: skip
_FROM_FILES = ("NCCL_", "OMPI_MCA_")
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "HOROVOD_RANK", "SLURM_PROCID")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the ranks are to meet, and which variable says so."""

    variable: str
    address: str
    port: str = ""  # as it is written
    is_endpoint: bool = False  # the variable holds both, as host:port
    is_drivers: bool = False  # the launcher's own driver listens there, which may be on any machine

    def written(self, address: str) -> str:
        """What to give the variable to mean another address."""
        return f"{f'[{address}]' if ':' in address else address}:{self.port}" if self.is_endpoint else address

    def written_port(self, port: int) -> str:
        """What to give the variable that holds the port to mean another one."""
        return replace(self, port=str(port)).written(self.address) if self.is_endpoint else str(port)

    @property
    def port_variable(self) -> str:
        """The variable that holds the port."""
        return self.variable if self.is_endpoint else self.variable.removesuffix("ADDR") + "PORT"

    @property
    def number(self) -> int | None:
        """The port, if it is one."""
        return int(self.port) if self.port.isdigit() and 0 < int(self.port) < 65536 else None


@dataclass(frozen=True)
class HostFacts:
    """What one target told. Not slotted: what is asked often is kept."""

    label: str
    host: str
    ranks: tuple[int, ...]
    facts: Mapping[str, Any]
    clock_ahead: float | None = None  # seconds that its clock is ahead of ours
    clock_error: float = 0.0  # by how much that may be wrong
    resolved: Mapping[str, Any] = field(default_factory=dict)  # the other targets' names, looked up here

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """The variables whose values were told; what NCCL and Open MPI read from their files stands where the environment has nothing."""
        environment = self.section("environment")
        found: dict[str, str] = {}
        for written in reversed(list(environment.get("files", {}).values())):  # the system's file counts least
            found.update({name: value for name, value in written.items() if name.startswith(_FROM_FILES)})
        return {**found, **environment.get("variables", {})}

    def file_of(self, name: str) -> str | None:
        """The file that sets a variable; None if the environment does."""
        environment = self.section("environment")
        if name in environment.get("variables", {}):
            return None
        return next((path for path, written in environment.get("files", {}).items() if name in written), None)

    def variable(self, name: str) -> str | None:
        """One variable; None if it is not set."""
        return self.variables.get(name)

    @cached_property
    def place(self) -> Place | None:
        """By what torchrun is told, as long as it has not told the ranks; else by the ranks' own variables, or Horovod's."""
        has = self.variables.get
        return (None if has("TORCHELASTIC_RUN_ID") else self._torchrun_place()) or self._rank_place()

    def _torchrun_place(self) -> Place | None:
        has = self.variables.get
        if (endpoint := has("PET_RDZV_ENDPOINT")) and not (has("PET_RDZV_BACKEND") or "").startswith("etcd"):
            host = host_of(endpoint)
            rest = endpoint.removeprefix("[").removeprefix(host).removeprefix("]")
            port = rest.removeprefix(":") or ("29400" if has("PET_RDZV_BACKEND") else "29500")
            return Place("PET_RDZV_ENDPOINT", host, port, is_endpoint=True)
        if address := has("PET_MASTER_ADDR"):
            return Place("PET_MASTER_ADDR", address, has("PET_MASTER_PORT") or "29500")
        return None

    def _rank_place(self) -> Place | None:
        has = self.variables.get
        if address := has("MASTER_ADDR"):
            return Place("MASTER_ADDR", address, has("MASTER_PORT") or "29500")
        if address := has("HOROVOD_GLOO_RENDEZVOUS_ADDR"):
            port = has("HOROVOD_GLOO_RENDEZVOUS_PORT") or ""
            return Place("HOROVOD_GLOO_RENDEZVOUS_ADDR", address, port, is_drivers=True)
        return None

    def section(self, name: str) -> Mapping[str, Any]:
        """A section of the facts; empty if it is missing."""
        found = self.facts.get(name)
        return found if isinstance(found, Mapping) else {}

    @property
    def interfaces(self) -> Mapping[str, Mapping[str, Any]]:
        """By name; those that could not be looked at are no interfaces."""
        return self.section("interfaces")

    def addresses(self, *, loopback: bool = False) -> list[str]:
        """Own addresses without their lengths, those inside of the host last; link-local ones, which only hold on one link, are left out."""
        found = []
        for _, facts in sorted(self.interfaces.items(), key=lambda item: item[0].startswith(INNER)):
            for written in facts["addresses"]:
                address = ipaddress.ip_interface(written).ip
                if (loopback or not address.is_loopback) and not address.is_link_local and facts["up"]:
                    found.append(str(address))
        return found

    @cached_property
    def networks(self) -> Mapping[str, str]:
        """By own address, the network that it is in."""
        written = [ipaddress.ip_interface(one) for facts in self.interfaces.values() for one in facts["addresses"]]
        return {str(one.ip): str(one.network) for one in written}

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
        """Equal for targets that share one network stack."""
        who = self.section("who")
        return f"{who.get('boot')} {who.get('network')}"


def rank_of(variables: Mapping[str, str]) -> int | None:
    """The rank by whatever launcher's variable; None if there is none that reads as a number."""
    for name in _RANK:
        value = variables.get(name, "").strip()
        if value.isdigit():
            return int(value)
    return None


def one_per_network(all_facts: Iterable[HostFacts]) -> list[HostFacts]:
    """The first facts of each network stack: what is true of a host is said once."""
    found: dict[str, HostFacts] = {}
    for host_facts in all_facts:
        found.setdefault(host_facts.network, host_facts)
    return list(found.values())
