"""What torchrun is told on every node: number of nodes, node's rank, processes, rendezvous; and launchers that disagree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from phalanx.model import Unchecked
from phalanx.model.ranks import name_all
from phalanx.preflight.agreement import split_of, variable
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts, one_per_network
from phalanx.preflight.options import CheckOptions

_NODES = ("PET_NNODES", "NNODES", "NNODE", "GROUP_WORLD_SIZE", "SLURM_NNODES")
_NODE_RANK = ("PET_NODE_RANK", "NODE_RANK", "GROUP_RANK")
_MEETING = {
    "id": ("PET_RDZV_ID", "RDZV_ID", "TORCHELASTIC_RUN_ID"),
    "endpoint": ("PET_RDZV_ENDPOINT", "RDZV_ENDPOINT"),
    "backend": ("PET_RDZV_BACKEND", "RDZV_BACKEND"),
}
# A variable that a user exports to all ranks alike, beside the one that the launcher gives each rank.
_RIVALS = (
    ("RANK", ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")),
    ("WORLD_SIZE", ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")),
    ("LOCAL_RANK", ("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID")),
)


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """What nodes are told that does not fit together."""
    hosts = one_per_network(all_facts)
    yield from _nodes(hosts)
    for what, names in _MEETING.items():
        name, split = next(
            ((name, found) for name in names if (found := split_of(hosts, partial(_told, name)))),
            ("", None),
        )
        if split is not None:
            name_of_fact = "rendezvous-id-differs" if what == "id" else "rendezvous-place-differs"
            fields: dict[str, Any] = {} if what == "id" else {"what": what}
            yield observe(name_of_fact, split.odd, name=name, **split.fields(), **fields)
    yield from _rivals(all_facts)


def _told(name: str, one: HostFacts) -> str | None:
    """What a node is told of the rendezvous; a torchrun that is told nothing takes another default than the others' value."""
    return one.variable(name) or ("" if name.startswith("PET_") and one.variable("PET_NNODES") else None)


def _nodes(hosts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    for name in _NODES:
        split = split_of(hosts, variable(name))
        if split is not None:
            yield observe("nnodes-differs", split.odd, name=name, count=len(hosts), **split.fields())
            continue
        value = next((one.variable(name) for one in hosts if one.variable(name)), None)
        bounds = re.fullmatch(r"(\d+)(?::(\d+))?", value or "")
        if bounds is not None and len(hosts) > 1 and all(one.variable(name) for one in hosts):
            least, most = int(bounds[1]), int(bounds[2] or bounds[1])
            if len(hosts) < least or (len(hosts) > most and name != "GROUP_WORLD_SIZE"):
                yield observe(
                    "nnodes-not-the-hosts",
                    (),
                    tuple(one.label for one in hosts),
                    name=name,
                    value=value,
                    count=len(hosts),
                    all_hosts=name_all(one.host for one in hosts),
                )
    for name in _NODE_RANK:
        holders: dict[str, list[str]] = {}
        for one in hosts:
            if (value := one.variable(name)) is not None:
                holders.setdefault(value.strip(), []).append(one.label)
        for value, labels in holders.items():
            if len(labels) > 1 and value.isdigit():
                yield observe("node-rank-duplicate", tuple(labels), name=name, value=value, count=len(labels))
            size = next((int(v) for one in hosts for n in _NODES if (v := one.variable(n) or "").isdigit()), None)
            if value.isdigit() and size is not None and int(value) >= size:
                yield observe("node-rank-out-of-range", tuple(labels), name=name, value=value, size=size, last=size - 1)


def _rivals(all_facts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    """RANK exported by hand, beside the rank that the launcher gives: each library believes another one."""
    if any(one.variable("TORCHELASTIC_RUN_ID") for one in all_facts):
        return  # torchrun inside of another launcher's step numbers its own processes
    for name, others in _RIVALS:
        for other in others:
            bad = [
                one
                for one in all_facts
                if (mine := one.variable(name)) is not None
                and (theirs := one.variable(other)) is not None
                and mine != theirs
            ]
            if bad and other.startswith("SLURM") and len(all_facts) == 1:
                continue  # a batch script's own step is no rank
            if bad:
                one = bad[0]
                yield observe(
                    "launcher-and-environment-disagree",
                    tuple(found.label for found in bad),
                    name=name,
                    mine=one.variable(name),
                    other=other,
                    theirs=one.variable(other),
                )
                break
