"""The launch command itself: what torchrun, mpirun and horovodrun would make of it on so many hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from phalanx.check.agreement import address_for_others, several_hosts
from phalanx.check.launch_line import LaunchLine
from phalanx.check.options import CheckOptions
from phalanx.check.reading import Reading
from phalanx.check.witness import Witness, name_all, one_per_network
from phalanx.model import Unchecked

_BACKENDS = ("static", "c10d", "etcd", "etcd-v2")
_PLACES = ("rdzv-endpoint", "master-addr")


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[Reading | Unchecked]:
    """Only if there is one."""
    line = options.launch
    if line.program == "torchrun":
        yield from _torchrun(line, witnesses)
    elif line.program:
        yield from _slots(line)
        yield from _hosts(line, witnesses)


def _torchrun(line: LaunchLine, witnesses: Sequence[Witness]) -> Iterable[Reading]:
    given = line.options
    harmed = tuple(one.label for one in witnesses)
    nodes = int(given["nnodes"]) if given.get("nnodes", "").isdigit() else None
    backend = given.get("rdzv-backend", "static")
    if backend not in _BACKENDS:
        yield _reading(f"has --rdzv-backend {backend}, which torchrun does not know", harmed, "--rdzv-backend c10d")
    rank = given.get("node-rank", "")
    if nodes is not None and rank.isdigit() and int(rank) >= nodes:
        says = f"has --node-rank {rank}, but {nodes} nodes are numbered from 0 to {nodes - 1}"
        yield _reading(says, harmed, f"a --node-rank from 0 to {nodes - 1}")
    processes = given.get("nproc-per-node", "1")
    if not re.fullmatch(r"\d+|auto|gpu|cpu|xpu", processes):
        yield _reading(f"has --nproc-per-node {processes}, which is no number", harmed, "a number, gpu or auto")
    if nodes == 1 or not several_hosts(witnesses):
        return
    if "standalone" in given:
        says = "has --standalone, with which every node runs a job of its own"
        yield _reading(says, harmed, "--rdzv-backend c10d --rdzv-endpoint HOST:29400 in its place")
    elif not any(given.get(name) for name in _PLACES) and not any(one.place for one in witnesses):
        says = "says nowhere where the nodes meet, so that every node waits for the others at 127.0.0.1"
        yield _reading(
            says, harmed, f"--rdzv-backend c10d --rdzv-endpoint {address_for_others(witnesses[0], witnesses)}:29400"
        )
    elif backend == "static" and not rank and not any(one.variable("PET_NODE_RANK") for one in witnesses):
        says = "has no --node-rank, so that every node is node 0"
        yield _reading(
            says, harmed, "--node-rank 0, 1, … on the nodes, or --rdzv-backend c10d, which numbers them itself"
        )


def _reading(says: str, harmed: tuple[str, ...], right: str) -> Reading:
    return Reading(f"check: the launch command {says}", harmed=harmed, values={"right": right})


def _slots(line: LaunchLine) -> Iterable[Reading]:
    total = sum(line.slots.values())
    if line.ranks is None or not line.slots or line.ranks <= total or line.may_share:
        return
    told = name_all(f"{host} {count}" for host, count in line.slots.items())
    yield Reading(
        f"check: {line.program} is asked for {line.ranks} ranks, but its hosts have {total} slots ({told})",
        values={"each": str(-(-line.ranks // len(line.slots))), "hosts": ",".join(line.slots)},
    )


def _hosts(line: LaunchLine, witnesses: Sequence[Witness]) -> Iterable[Unchecked]:
    """Hosts of the command that nobody looks at."""
    known = {name for one in witnesses for name in (one.host, str(one.section("names").get("own") or ""))}
    known |= {address for one in witnesses for address in one.addresses()} | {"localhost"}
    absent = [host for host in line.slots if host.rpartition("@")[2] not in known]
    if absent and (len(one_per_network(witnesses)) > 1 or len(absent) < len(line.slots)):
        yield Unchecked(
            f"{name_all(absent)} of the launch command", f"--hosts with {'it' if len(absent) == 1 else 'them'}", True
        )
