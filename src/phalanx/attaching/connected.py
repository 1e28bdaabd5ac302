"""Finds jobs that no variable tells: Python processes that run the same program and talk to one another over TCP.

Ranks set their own variables at run time (`mp.spawn`, scripts started by hand), which /proc does not show. Data loader workers run
the same program too, but speak to their parent through pipes. Which rank a process is, its stack or its arguments tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from phalanx.attaching.discovery import FoundJob, FoundRank, Process, ancestors, make_job, script_of
from phalanx.attaching.identity import Identity
from phalanx.run.watch.network import Tables, connections_of
from phalanx.run.watch.stacks import ProcessStacks

_ARGUMENT = re.compile(
    r"--?(?:node[_-]?)?(?:global[_-]?)?(?:rank|proc(?:ess)?[_-]id|task[_-]index)(?:=(?P<value>\d+))?$"
)
_NAMES = ("rank", "global_rank", "local_rank", "proc_id", "process_id", "gpu")
_SPAWNED = "torch/multiprocessing/spawn.py"
_SPAWN_MAIN = "multiprocessing.spawn import spawn_main"


def jobs_by_connections(processes: Mapping[int, Process], taken: Iterable[int]) -> list[FoundJob]:
    """Groups of at least two processes that are connected and no ranks of a job that is already known."""
    known = set(taken)
    candidates = {
        pid: one
        for pid, one in processes.items()
        if one.is_python and pid not in known and not known & {above.pid for above in ancestors(one, processes)}
    }
    ends: dict[tuple[tuple[str, int], tuple[str, int]], int] = {}
    tables: Tables = {}
    for pid in candidates:
        ends |= {(one.local, one.peer): pid for one in connections_of(pid, pid, tables)}
    links = [(pid, other) for (local, peer), pid in ends.items() if (other := ends.get((peer, local)))]
    groups = _components(
        (pid, other) for pid, other in links if _program(candidates[pid]) == _program(candidates[other])
    )
    return [_ordered(group, processes) for group in groups if len(group) > 1]


def _program(process: Process) -> str:
    """What must be equal for two processes to be ranks of one job; children of `mp.spawn` all have one command line."""
    words = " ".join(process.command)
    return f"spawned by {process.parent}" if _SPAWN_MAIN in words else script_of(process.command)


def _components(links: Iterable[tuple[int, int]]) -> list[set[int]]:
    groups: list[set[int]] = []
    for pair in links:
        touching = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touching]
        groups.append(set(pair).union(*touching))
    return groups


def _ordered(group: set[int], processes: Mapping[int, Process]) -> FoundJob:
    """Ranks by their arguments, where each has another number; else by the order in which they were started."""
    members = sorted((processes[pid] for pid in group), key=lambda one: (one.start, one.pid))
    by_argument = [rank_in(one.command) for one in members]
    is_told = None not in by_argument and len(set(by_argument)) == len(members)
    key = f"connected:{min(group)}"
    ranks = [
        FoundRank(
            one,
            Identity("connections", key, told if is_told and told is not None else number, None),
            "arguments" if is_told else "order of start",
        )
        for number, (one, told) in enumerate(zip(members, by_argument, strict=True))
    ]
    return make_job(key, ranks, processes)


def rank_in(command: Sequence[str]) -> int | None:
    """`--rank 2`, `--node_rank=2`, on a command line."""
    for word, following in zip(command, [*command[1:], ""], strict=True):
        if (match := _ARGUMENT.fullmatch(word)) is not None:
            text = match["value"] or following
            if text.isdigit():
                return int(text)
    return None


def rank_on_stack(stacks: ProcessStacks) -> int | None:
    """The rank that the main thread's variables name: what `mp.spawn` handed over, else a variable called rank."""
    if stacks.main is None or not stacks.main.values:
        return None
    framed = list(zip(stacks.main.frames, stacks.main.values, strict=False))
    for frame, values in framed:
        if frame.path.endswith(_SPAWNED) and frame.function == "_wrap" and values.get("i", "").isdigit():
            return int(values["i"])
    for frame, values in framed:
        if frame.is_user_code:
            told = next((values[name] for name in _NAMES if values.get(name, "").isdigit()), None)
            if told is not None:
                return int(told)
    return None


def numbered_by_stacks(
    job: FoundJob, stacks: Mapping[int, ProcessStacks], processes: Mapping[int, Process]
) -> FoundJob:
    """The job with the ranks that the stacks name, where each process names another one."""
    if all(one.told_by in ("variables", "arguments") for one in job.ranks):
        return job
    told = {pid: rank_on_stack(stacks[pid]) for one in job.ranks if (pid := one.process.pid) in stacks}
    numbers = [rank for rank in told.values() if rank is not None]
    if len(numbers) < len(job.ranks) or len(set(numbers)) < len(numbers):
        return job
    ranks = [
        FoundRank(one.process, Identity("connections", job.key, told[one.process.pid] or 0, None), "stack")
        for one in job.ranks
    ]
    return make_job(job.key, ranks, processes)
