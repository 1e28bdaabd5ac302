"""Who says what, and who is alone with it: the ground of every comparison between targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.model.ranks import name_all
from phalanx.preflight.host_facts import HostFacts, one_per_network


@dataclass(frozen=True, slots=True)
class Split:
    """A value that is not the same everywhere. `common` is the majority's, None in a tie; `odd` are those with another."""

    by_value: dict[str, list[str]]
    common: str | None
    odd: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        """For a fact: who says what, the majority's value, and who has another; in a tie nobody is odd."""
        return {
            "told": self.told(),
            "common": self.common,
            "odd": name_all(self.odd) or None,
            "tie": self.common is None,
        }

    def told(self) -> str:
        """`4 on node0 and node1, 3 on node2`, the most frequent first."""
        ordered = sorted(self.by_value.items(), key=lambda item: -len(item[1]))
        shown = [f"{value or 'not set'} on {name_all(labels)}" for value, labels in ordered[:6]]
        return ", ".join(shown) + (f" and {len(ordered) - 6} other values" if len(ordered) > 6 else "")


def split_of(all_facts: Iterable[HostFacts], value_of: Callable[[HostFacts], str | None]) -> Split | None:
    """How the targets differ in a value; None if they agree. Targets without it (None) do not count."""
    by_value: dict[str, list[str]] = {}
    for host_facts in all_facts:
        if (value := value_of(host_facts)) is not None:
            by_value.setdefault(value, []).append(host_facts.label)
    if len(by_value) < 2:
        return None
    total = sum(map(len, by_value.values()))
    value, labels = max(by_value.items(), key=lambda item: len(item[1]))
    common = value if 2 * len(labels) > total else None
    odd = (
        tuple(label for other, found in by_value.items() if other != common for label in found)
        if common is not None
        else ()
    )
    return Split(by_value, common, odd)


def split_of_variable(all_facts: Sequence[HostFacts], name: str, *, unset: bool = True) -> Split | None:
    """How they differ in a variable; that some lack it counts as a difference unless nobody has it."""
    if all(host_facts.variable(name) is None for host_facts in all_facts):
        return None
    return split_of(all_facts, lambda host_facts: host_facts.variable(name) or ("" if unset else None))


def variable(name: str) -> Callable[[HostFacts], str | None]:
    """The question what a target has for this variable."""
    return lambda host_facts: host_facts.variable(name)


def address_for_others(one: HostFacts, all_facts: Sequence[HostFacts]) -> str:
    """The address to advise: in a network that most of the others have too; the host's name where it has none."""
    shared = Counter(
        network
        for other in one_per_network(all_facts)
        if other.network != one.network
        for network in set(other.networks.values())
    )
    return max(one.addresses(), key=lambda address: shared[one.networks[address]], default=one.host)


def several_hosts(all_facts: Sequence[HostFacts]) -> bool:
    """Whether they have more than one network stack between them."""
    return len({host_facts.network for host_facts in all_facts}) > 1


def world_size(all_facts: Sequence[HostFacts]) -> int | None:
    """How many ranks there are to be, by what most are told."""
    names = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "HOROVOD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
    told = [
        int(value) for one in all_facts for name in names if (value := (one.variable(name) or "").strip()).isdigit()
    ][:5000]
    return max(set(told), key=told.count) if told else None


def uses(host_facts: HostFacts, library: str, chosen: frozenset[str]) -> bool:
    """Whether the job seems to use a library: the user says so, or its variables are set by a launcher."""
    if chosen:
        return library in chosen
    marks = {
        "mpi": (
            "OMPI_COMM_WORLD_SIZE",
            "PMIX_NAMESPACE",
            "PRTE_LAUNCHED",
            "PMI_SIZE",
            "I_MPI_HYDRA_HOST_FILE",
            "MPI_LOCALNRANKS",
        ),
        "tensorflow": ("TF_CONFIG",),
        "horovod": ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_GLOO_RENDEZVOUS_ADDR"),
        "torch": ("MASTER_ADDR", "TORCHELASTIC_RUN_ID", "PET_NNODES", "PET_RDZV_ENDPOINT"),
    }.get(library, ())
    if library in ("gloo", "nccl"):
        return uses(host_facts, "torch", chosen) or uses(host_facts, "horovod", chosen)
    return any(host_facts.variable(mark) for mark in marks)


def uses_only_gloo(all_facts: Iterable[HostFacts], chosen: frozenset[str]) -> bool:
    """Whether nothing tells of another library that opens connections: NCCL connects in a ring, gRPC to all, MPI as it needs them."""
    named = chosen - {"torch", "horovod"}  # which take NCCL or Gloo, as the host has it
    if named:
        return named == {"gloo"}
    return not any(
        one.section("limits").get("gpus")
        or any(name.startswith("NCCL_") for name in one.variables)
        or any(uses(one, library, frozenset()) for library in ("mpi", "tensorflow"))
        for one in all_facts
    )
