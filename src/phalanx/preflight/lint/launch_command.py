"""The launch command itself: what torchrun, mpirun and horovodrun would make of it on so many hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.model.ranks import name_all
from phalanx.preflight.agreement import address_for_others, several_hosts
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts, one_per_network
from phalanx.preflight.launch_line import LaunchLine
from phalanx.preflight.options import CheckOptions

_BACKENDS = ("static", "c10d", "etcd", "etcd-v2")
_PLACES = ("rdzv-endpoint", "master-addr")


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Only if there is one."""
    line = options.launch
    if line.program == "torchrun":
        yield from _torchrun(line, all_facts)
    elif line.program:
        yield from _slots(line)
        yield from _hosts(line, all_facts)


def _torchrun(line: LaunchLine, all_facts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    given = line.options
    harmed = tuple(one.label for one in all_facts)
    nodes = int(given["nnodes"]) if given.get("nnodes", "").isdigit() else None
    backend = given.get("rdzv-backend", "static")
    if backend not in _BACKENDS:
        yield observe("launch-command-wrong", (), harmed, backend=backend)
    rank = given.get("node-rank", "")
    if nodes is not None and rank.isdigit() and int(rank) >= nodes:
        yield observe("launch-command-wrong", (), harmed, node_rank=rank, nodes=nodes, last=nodes - 1)
    processes = given.get("nproc-per-node", "1")
    if not re.fullmatch(r"\d+|auto|gpu|cpu|xpu", processes):
        yield observe("launch-command-wrong", (), harmed, processes=processes)
    is_several = several_hosts(all_facts)
    if nodes == 1 or (nodes is None and not is_several):
        return
    address = address_for_others(all_facts[0], all_facts)
    if "standalone" in given:
        yield observe("launch-command-wrong", (), harmed, standalone=True, address=address)
    elif not any(given.get(name) for name in _PLACES) and not any(one.place for one in all_facts):
        yield observe("launch-command-wrong", (), harmed, nowhere=True, address=address)
    elif (
        is_several and backend == "static" and not rank and not any(one.variable("PET_NODE_RANK") for one in all_facts)
    ):
        yield observe("node-rank-unset", (), harmed)


def _slots(line: LaunchLine) -> Iterable[CheckFact]:
    total = sum(line.slots.values())
    if line.ranks is None or not line.slots or line.ranks <= total or line.may_share:
        return
    told = name_all(f"{host} {count}" for host, count in line.slots.items())
    yield observe(
        "slots-too-few",
        program=line.program,
        asked=line.ranks,
        slots=total,
        told=told,
        each=-(-line.ranks // len(line.slots)),
    )


def _hosts(line: LaunchLine, all_facts: Sequence[HostFacts]) -> Iterable[Unchecked]:
    """Hosts of the command that nobody looks at."""
    known = {name for one in all_facts for name in (one.host, str(one.section("names").get("own") or ""))}
    known |= {address for one in all_facts for address in one.addresses()} | {"localhost"}
    absent = [host for host in line.slots if host.rpartition("@")[2] not in known]
    if absent and (len(one_per_network(all_facts)) > 1 or len(absent) < len(line.slots)):
        yield Unchecked(
            f"{name_all(absent)} of the launch command", f"--hosts with {'it' if len(absent) == 1 else 'them'}", True
        )
