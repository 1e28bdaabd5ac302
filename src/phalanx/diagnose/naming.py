"""Gives a rank to lines that name a process or a pod instead: the kernel's, a cluster's, an agent's.

[123456.8] Out of memory: Killed process 103 (python) …         torchrun said that rank 3 has process 103
Warning  Evicted  pod/job-worker-2  The node was low on …       job-worker-2.log is rank 2's
"""

from __future__ import annotations

import re
from dataclasses import replace

from phalanx.model import Event, EventKind
from phalanx.sources import Observations

_PROCESS = re.compile(r"\b(?:[Kk]illed process|oom_kill_process|[Tt]ask in .{0,80} killed|PID:?|pid[ =:]) ?(\d{2,8})\b")
_POD = re.compile(r"\b(?:pods?/)?([a-z0-9][a-z0-9.-]{0,252}-(?:worker|master|chief|ps|launcher|node|trainer)-\d+)\b")


def name_speakers(seen: Observations) -> None:
    """Put the rank into every matched line that names a process or pod whose rank is known."""
    by_process = _ranks_by_process(seen)
    by_pod = {name: file.rank for file in seen.files if file.rank is not None for name in _POD.findall(file.name)}
    if not by_process and not by_pod:
        return
    jobs_own = {file.name for file in seen.files if any(entry.last_progress for entry in file.ranks.values())}
    named: dict[int, Event] = {}
    for index, match in enumerate(seen.matches):
        event = match.event
        if event.rank is not None or event.file in jobs_own:
            continue  # a job's own log tells its ranks by itself
        rank = _rank_named(event.text, by_process, by_pod)
        if rank is not None:
            known = named.setdefault(id(event), replace(event, rank=rank))
            seen.matches[index] = replace(match, event=known)


def _ranks_by_process(seen: Observations) -> dict[int, int]:
    """Processes that only one rank is known by: on several hosts the same number may stand for several."""
    ranks: dict[int, set[int]] = {}
    for event in seen.events:
        if event.kind is EventKind.EXIT and event.rank is not None and event.data.get("pid"):
            ranks.setdefault(int(event.data["pid"]), set()).add(event.rank)
    return {process: next(iter(owners)) for process, owners in ranks.items() if len(owners) == 1}


def _rank_named(text: str, by_process: dict[int, int], by_pod: dict[str, int]) -> int | None:
    for number in _PROCESS.findall(text):
        if int(number) in by_process:
            return by_process[int(number)]
    found = {by_pod[name] for name in _POD.findall(text) if name in by_pod}
    return found.pop() if len(found) == 1 else None
