"""What torchrun is told on every node: number of nodes, node's rank, processes, rendezvous; and launchers that disagree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from phalanx.check.agreement import split_of, variable
from phalanx.check.options import CheckOptions
from phalanx.check.reading import Reading
from phalanx.check.witness import Witness, name_all, one_per_network
from phalanx.model import Unchecked

_NODES = ("PET_NNODES", "NNODES", "NNODE", "GROUP_WORLD_SIZE", "SLURM_NNODES")
_NODE_RANK = ("PET_NODE_RANK", "NODE_RANK", "GROUP_RANK")
_MEETING = {
    "the rendezvous id": ("PET_RDZV_ID", "RDZV_ID", "TORCHELASTIC_RUN_ID"),
    "the rendezvous endpoint": ("PET_RDZV_ENDPOINT", "RDZV_ENDPOINT"),
    "the rendezvous backend": ("PET_RDZV_BACKEND", "RDZV_BACKEND"),
}
# A variable that a user exports to all ranks alike, beside the one that the launcher gives each rank.
_RIVALS = (
    ("RANK", ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")),
    ("WORLD_SIZE", ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")),
    ("LOCAL_RANK", ("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID")),
)


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[Reading | Unchecked]:
    """What nodes are told that does not fit together."""
    hosts = one_per_network(witnesses)
    yield from _nodes(hosts)
    for what, names in _MEETING.items():
        name, split = next(
            ((name, found) for name in names if (found := split_of(hosts, variable(name)))),
            ("", None),
        )
        if split is not None:
            advice = f"Give {name_all(split.odd)} {split.common}." if split.common else "Give all nodes the same."
            yield Reading(
                f"check: {what} ({name}) differs between the hosts: {split.told()}",
                accused=split.odd,
                values={"advice": advice},
            )
    yield from _rivals(witnesses)


def _nodes(hosts: Sequence[Witness]) -> Iterable[Reading]:
    for name in _NODES:
        split = split_of(hosts, variable(name))
        if split is not None:
            advice = (
                f"Set it to {split.common} on {name_all(split.odd)}."
                if split.common
                else f"There are {len(hosts)} hosts here."
            )
            yield Reading(
                f"check: {name} differs between the hosts: {split.told()}", accused=split.odd, values={"advice": advice}
            )
            continue
        value = next((one.variable(name) for one in hosts if one.variable(name)), None)
        bounds = re.fullmatch(r"(\d+)(?::(\d+))?", value or "")
        if bounds is not None and len(hosts) > 1 and all(one.variable(name) for one in hosts):
            least, most = int(bounds[1]), int(bounds[2] or bounds[1])
            if len(hosts) < least or (len(hosts) > most and name != "GROUP_WORLD_SIZE"):
                yield Reading(
                    f"check: {name}={value}, but {len(hosts)} hosts take part ({name_all(one.host for one in hosts)})",
                    values={"count": str(len(hosts)), "name": name},
                    harmed=tuple(one.label for one in hosts),
                )
    for name in _NODE_RANK:
        holders: dict[str, list[str]] = {}
        for one in hosts:
            if (value := one.variable(name)) is not None:
                holders.setdefault(value.strip(), []).append(one.label)
        for value, labels in holders.items():
            if len(labels) > 1 and value.isdigit():
                yield Reading(
                    f"check: {name}={value} is given to {len(labels)} hosts: {name_all(labels)}",
                    accused=tuple(labels),
                    values={"name": name},
                )
            size = next((int(v) for one in hosts for n in _NODES if (v := one.variable(n) or "").isdigit()), None)
            if value.isdigit() and size is not None and int(value) >= size:
                yield Reading(
                    f"check: {name}={value} on {name_all(labels)} is out of range: there are {size} nodes, so it goes from 0 to {size - 1}",
                    accused=tuple(labels),
                    values={"name": name, "size": str(size)},
                )


def _rivals(witnesses: Sequence[Witness]) -> Iterable[Reading]:
    """RANK exported by hand, beside the rank that the launcher gives: each library believes another one."""
    if any(one.variable("TORCHELASTIC_RUN_ID") for one in witnesses):
        return  # torchrun inside of another launcher's step numbers its own processes
    for name, others in _RIVALS:
        for other in others:
            bad = [
                one
                for one in witnesses
                if (mine := one.variable(name)) is not None
                and (theirs := one.variable(other)) is not None
                and mine != theirs
            ]
            if bad and other.startswith("SLURM") and len(witnesses) == 1:
                continue  # a batch script's own step is no rank
            if bad:
                one = bad[0]
                yield Reading(
                    f"check: {name}={one.variable(name)} but {other}={one.variable(other)} on {one.label}: the launcher and the environment disagree",
                    accused=tuple(found.label for found in bad),
                    values={"name": name, "other": other},
                )
                break
