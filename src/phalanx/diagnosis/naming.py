"""Gives a rank to lines that name a process or a pod instead: the kernel's, a cluster's, an agent's.

[88112.1] NVRM: Xid (PCI:0000:61:00): 79, …                     NCCL said that rank 27 uses the GPU at 61000 of that host
OutOfMemoryError: … GPU 4 has a total capacity …                rank 4, if the launcher saw it fail: on several nodes others have this GPU too
Detected 1 oom_kill event in StepId=8841.0. …                   of the one rank that was killed
[123456.8] Out of memory: Killed process 103 (python) …         torchrun said that rank 3 has process 103
Warning  Evicted  pod/job-worker-2  The node was low on …       job-worker-2.log is rank 2's
RuntimeError: DataLoader worker (pid 4) is killed …             of a console in which only rank 6 ended with status 1
"""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from dataclasses import replace
from itertools import zip_longest

from phalanx.model import Event, EventKind
from phalanx.sources import Observations
from phalanx.sources.filenames import log_dir_place
from phalanx.sources.readers.communicators import SOURCE as COMMUNICATOR
from phalanx.sources.readers.communicators import WORKER

_PROCESS = re.compile(r"\b(?:[Kk]illed process|oom_kill_process|[Tt]ask in .{0,80} killed|PID:?|pid[ =:]) ?(\d{2,8})\b")
_XID = re.compile(r"NVRM: (?:Xid \(PCI:|GPU (?:at )?(?:PCI:)?)[0-9a-fA-F]{4,8}:(?P<bus>[0-9a-fA-F]{2}):")
_DEVICE_FAILED = re.compile(r"\bCUDA error: |\bCUBLAS_STATUS|\bCUDNN_STATUS|uncorrectable ECC")
_FULL_DEVICE = re.compile(r"CUDA out of memory.{0,80}?\bGPU (?P<device>[1-9]\d?)\b")
_LOST_PEER = re.compile(r"ncclRemoteError|remote process exited|[Cc]onnection closed by")
_OUT_OF_MEMORY = re.compile(r"oom[-_ ]kill event|tasks? \d+: Out Of Memory")
_POD = re.compile(r"\b(?:pods?/)?([a-z0-9][a-z0-9.-]{0,252}-(?:worker|master|chief|ps|launcher|node|trainer)-\d+)\b")


# What launchers raise themselves when a process of theirs has failed.
_LAUNCHERS = re.compile(
    r"^(?:[\w.]+\.)?(?:ChildFailedError|CalledProcessError|ProcessRaisedException|ActorDiedError)\b"
)
_NODE = 8  # ranks that one node holds: there, devices have the numbers of ranks
_CHAINED = 4  # lines from an exception to the traceback of the one that it led to
_BEFORE = 120  # lines of a traceback, at most


def with_speakers(seen: Observations) -> Observations:
    """The same with the rank in every matched line that names a process or pod whose rank is known."""
    seen = _with_node_folders(replace(seen, events=list(seen.events), matches=list(seen.matches)))
    _name_only_exception(seen)
    by_process = _ranks_by_process(seen)
    _name_tasks(seen, by_process)
    struck = {
        event.rank for event in seen.events if event.kind is EventKind.EXCEPTION and _DEVICE_FAILED.search(event.text)
    }
    by_device = _ranks_by_device(seen)
    by_pod = {name: file.rank for file in seen.files if file.rank is not None for name in _POD.findall(file.name)}
    jobs_own = {file.name for file in seen.files if any(entry.last_progress for entry in file.ranks.values())}
    killed = _killed(seen)
    named: dict[int, Event] = {}
    for index, match in enumerate(seen.matches):
        event = match.event
        if event.rank is None and len(killed) == 1 and _OUT_OF_MEMORY.search(event.text):
            rank: int | None = next(iter(killed))
        elif event.rank is not None or (event.file in jobs_own and not _XID.search(event.text)):
            continue  # a job's own log tells its ranks by itself; the kernel's lines in it do not
        else:
            rank = _rank_named(event.text, by_process, by_pod)
            rank = _rank_at(event, by_device, struck) if rank is None else rank
        if rank is not None:
            known = named.setdefault(id(event), replace(event, rank=rank))
            seen.matches[index] = replace(match, event=known)
    return seen


def _with_node_folders(seen: Observations) -> Observations:
    """Ranks for the files of `torchrun --log-dir` of several nodes: a node's ranks follow one another, so that one of them,
    named in its own file or in the launcher's table beside its host, tells all of its folder."""
    places = {file.name: place for file in seen.files if (place := log_dir_place(file.name)) is not None}
    begins: dict[str, set[int]] = defaultdict(set)
    for file in seen.files:
        if file.rank is not None and file.name in places:
            begins[places[file.name][0]].add(file.rank - places[file.name][1])
    for event in seen.events:
        if event.kind is EventKind.EXIT and event.rank is not None and event.data.get("host"):
            host = event.data["host"].partition(".")[0]
            for folder in {folder for folder, _ in places.values() if host in re.split(r"[/.]", folder)}:
                begins[folder].add(event.rank - event.data["local"])
    ranks = {name: min(begins[folder]) + own for name, (folder, own) in places.items() if len(begins[folder]) == 1}
    new = {file.name: ranks[file.name] for file in seen.files if file.rank is None and file.name in ranks}
    if not new:
        return seen
    given = {id(event): _in_file(event, new) for event in seen.events}
    return replace(
        seen,
        files=[
            replace(file, rank=new[file.name], ranks={new.get(file.name) if rank is None else rank: entry for rank, entry in file.ranks.items()})
            if file.name in new
            else file
            for file in seen.files
        ],
        events=[given[id(event)] for event in seen.events],
        matches=[replace(one, event=given.get(id(one.event)) or _in_file(one.event, new)) for one in seen.matches],
    )  # fmt: skip


def _in_file(event: Event, ranks: dict[str, int]) -> Event:
    return replace(event, rank=ranks[event.file]) if event.rank is None and event.file in ranks else event


def _killed(seen: Observations) -> set[int]:
    """The ranks that a launcher saw end by SIGKILL."""
    exits = (event for event in seen.events if event.kind is EventKind.EXIT and event.rank is not None)
    return {event.rank for event in exits if event.rank is not None and event.data.get("code") == -signal.SIGKILL}


def _communicators(seen: Observations) -> list[Event]:
    """Those of the largest group: its ranks are the job's."""
    told = [event for event in seen.events if event.source == COMMUNICATOR]
    largest = max((event.data["size"] for event in told), default=0)
    return [event for event in told if event.data["size"] == largest]


def _ranks_by_device(seen: Observations) -> dict[tuple[str, str], int]:
    """By host and bus address without the function, as the kernel writes it."""
    return {(event.data["host"], f"{event.data['bus'][:-3]:>02}"): event.data["rank"] for event in _communicators(seen)}


def _rank_at(event: Event, by_device: dict[tuple[str, str], int], struck: set[int | None]) -> int | None:
    """The rank that uses the device of an Xid line, if the host is known: by the line, the name of its file, or as the only one.

    Where nothing tells who uses which device, it is the one rank whose device failed.
    """
    match = _XID.search(event.text)
    if match is None:
        return None
    if not by_device:
        return next(iter(struck)) if len(struck) == 1 else None
    hosts = {host for host, _ in by_device}
    own = {host for host in hosts if host == event.host or re.search(rf"(?<!\w){re.escape(host)}(?!\w)", event.file)}
    found = {by_device.get((host, match["bus"].lower())) for host in own or (hosts if len(hosts) == 1 else ())}
    return found.pop() if len(found) == 1 else None


def _ranks_by_process(seen: Observations) -> dict[int, int]:
    """Processes that only one rank is known by: on several hosts the same number may stand for several."""
    ranks: dict[int, set[int]] = {}
    for event in (*_communicators(seen), *(one for one in seen.events if one.source == WORKER)):
        ranks.setdefault(event.data["pid"], set()).add(event.data["rank"])
    for event in seen.events:
        if event.kind is EventKind.EXIT and event.rank is not None and event.data.get("pid"):
            ranks.setdefault(int(event.data["pid"]), set()).add(event.rank)
    return {process: next(iter(owners)) for process, owners in ranks.items() if len(owners) == 1}


def _name_tasks(seen: Observations, by_process: dict[int, int]) -> None:
    """A driver's traceback names the process of the task that raised; an allocator's message the device that is full."""
    sizes = {size for file in seen.files for size in file.world_sizes}
    # On two nodes of four, GPU 3 is that of ranks 3 and 7: the launcher must have seen the rank of this number fail.
    failed = {event.rank for event in seen.events if event.kind is EventKind.EXIT and event.data.get("code") == 1}
    for event in seen.events[:]:
        if event.kind is not EventKind.EXCEPTION or event.rank is not None:
            continue
        full = _FULL_DEVICE.search(event.text) if len(sizes) == 1 and max(sizes) <= _NODE else None
        if event.data.get("pid") in by_process:
            _give(seen, event, by_process[event.data["pid"]])
        elif full is not None and int(full["device"]) in failed:
            _give(seen, event, int(full["device"]))


def _give(seen: Observations, event: Event, rank: int) -> None:
    """Put the rank into an event and into what rules matched in it."""
    named = replace(event, rank=rank)
    seen.events[seen.events.index(event)] = named
    for index, match in enumerate(seen.matches):
        if match.event is event:
            seen.matches[index] = replace(match, event=named)


def _rank_named(text: str, by_process: dict[int, int], by_pod: dict[str, int]) -> int | None:
    for number in _PROCESS.findall(text):
        if int(number) in by_process:
            return by_process[int(number)]
    found = {by_pod[name] for name in _POD.findall(text) if name in by_pod}
    return found.pop() if len(found) == 1 else None


def _led_to(event: Event, after: Event | None) -> bool:
    """Whether the next exception was raised while this one was handled: Python says so between them. Without that line it may be another rank's."""
    if after is None or event.rank != after.rank or not after.data.get("is_chained"):
        return False
    return bool(0 < after.data.get("starts", 0) - event.line <= _CHAINED)


def _name_only_exception(seen: Observations) -> None:
    """In a console without labels, the one exception is that of the one rank that its launcher saw end with status 1."""
    for file in seen.files:
        if file.rank is not None or file.is_cut:
            continue
        own = [event for event in seen.events if event.file == file.name]
        raised = [event for event in own if event.kind is EventKind.EXCEPTION and not _LAUNCHERS.search(event.text)]
        ended = {event.rank: event for event in own if event.kind is EventKind.EXIT and event.rank is not None}
        failed = [rank for rank, event in ended.items() if event.data["code"] == 1]
        raised = [one for one, after in zip_longest(raised, raised[1:]) if not _led_to(one, after)]
        if len(raised) != 1 or raised[0].rank is not None or len(failed) != 1:
            continue
        last, rank = raised[0].line, failed[0]
        until = max(ended[rank].line, last + 1)
        _give(seen, raised[0], rank)
        for index, match in enumerate(seen.matches):
            event = match.event
            is_near = event.file == file.name and last - _BEFORE <= event.line < until
            if is_near and event.rank is None and not _LOST_PEER.search(event.text):
                seen.matches[index] = replace(match, event=replace(event, rank=rank))
