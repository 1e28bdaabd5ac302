"""Learns from a whole file what its labels number: global ranks, the ranks of one node, nodes, or ranks within a group.

[default3]:[rank11]:[E…          --tee counts the ranks of a node: here rank 11 is the fourth of its node
1: [rank11]:[E…                  srun -l with one torchrun for each node: the label is the node
[pod/job-worker-0/pytorch] [rank11]:  a pod with several ranks
rank      : 11 (local_rank: 3)   torchrun's table says it of both
[Rank 1] Watchdog caught …       printed by several processes, or on a node whose ranks begin at 8: a rank within its group
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_SCOPE = 1 << 18  # bytes of the beginning and of the end that are looked at
_NODE = 8  # GPUs of a node, mostly: where ranks have such numbers, devices count the ranks of one node
_TOLD = 400  # lines that tell both; more are the same again
_NESTED = re.compile(
    rb"^(?:\d{4}-\d\d-\d\dT\S+ std(?:err|out) [FP] )?"
    rb"(?:\[(?:default|trainer|worker|local_rank_?)(?P<local>\d{1,6})\]:?|\s{0,5}(?P<task>\d{1,5}): ?|\[pod/(?P<pod>[\w.-]+)/[\w.-]+\] ?)"
    rb"\[rank(?P<rank>\d{1,6})\]:",
    re.M,
)
_TABLE = re.compile(
    rb"^(?P<label>(?:\s{0,5}(?P<task>\d{1,5}): |\[pod/(?P<pod>[\w.-]+)/[\w.-]+\] ?|[\w.-]+: )?)"
    rb"\s+rank\s+: (?P<rank>\d{1,6}) \(local_rank: (?P<local>\d{1,6})\)",
    re.M,
)
_PROCESS = re.compile(
    rb"rank\s+: (?P<rank>\d{1,6}) \(local_rank: \d{1,6}\)[^\n]{0,20}\n[^\n]{0,80}exitcode\s+: -?\d{1,4} \(pid: (?P<pid>\d{1,8})\)"
)
# (RayTrainWorker pid=…) is told apart by Ray's list of its workers.
_WORKER = re.compile(rb"\bpid=(?P<pid>\d{1,8})\) world_rank=(?P<rank>\d{1,6})\b")
# The agent of a node speaks only where a task or a pod is a node.
_AGENT = re.compile(
    rb"^(?:\s{0,5}\d{1,5}: |\[pod/[\w.-]+/[\w.-]+\] ?)"
    rb"(?:WARNING:|ERROR:|[WEI]\d{4} \d\d:|\[[-\d]{10} [\d:,]+\] )\S* ?\d* ?torch[./]distributed[./](?:elastic|run)",
    re.M,
)
_OWN = re.compile(rb"^(?:\S+ std(?:err|out) [FP] )?\[rank(?P<rank>\d{1,6})\]:", re.M)
# torchrun says it only where it starts several processes on its node.
_SEVERAL = b"Setting OMP_NUM_THREADS environment variable for each process"
_NCCL_HOST = re.compile(rb"(?:^|[FP)\]|:] )(?P<host>[\w.-]{1,80}):\d+:\d+ \[\d+\] ", re.M)
_WITHIN = re.compile(rb"\[E ProcessGroupNCCL\.cpp:\d+\] \[Rank (?P<rank>\d{1,6})\] Watchdog caught collective")

_WORDS = {
    _NESTED: b"[rank",
    _TABLE: b"(local_rank: ",
    _PROCESS: b"(local_rank: ",
    _WORKER: b") world_rank=",
    _OWN: b"[rank",
    _WITHIN: b"Watchdog caught",
    _NCCL_HOST: b" NCCL ",
    _AGENT: b"distributed",
}


@dataclass(frozen=True, slots=True)
class Labels:
    """What the labels of a file number.

    `offset`: what is added to a local rank to make it global, None where nothing tells. `of_nodes`: labels of tasks and
    pods name nodes. `only_rank`: the one rank that speaks in a file of its own; `are_several`: more than one do. `within_groups`: `[Rank 3]` of a
    watchdog is not a global rank. `several_hosts`: there are more than one, so NCCL's device numbers are no ranks;
    `several_nodes`: local ranks of more than one node are told of. `ranks_by_pid`: by torchrun's tables and Ray's lists.
    """

    offset: int | None = None
    of_nodes: bool = False
    only_rank: int | None = None
    are_several: bool = False
    within_groups: bool = False
    several_hosts: bool = False
    several_nodes: bool = False
    ranks_by_pid: Mapping[int, int] = field(default_factory=dict)


def learn(data: bytes | bytearray | memoryview) -> Labels:
    """What the beginning and the end of a file tell of its labels."""
    whole = bytes(data[:_SCOPE])
    if len(data) > _SCOPE:
        whole += bytes(data[max(_SCOPE, len(data) - _SCOPE) :])
    if not any(word in whole for word in (b"rank", b"[Rank ", b"torch", b"NCCL")):
        return Labels()
    offsets: Counter[int] = Counter()
    by_label: dict[bytes, set[int]] = defaultdict(set)
    for match in _first(_NESTED, whole):
        rank = int(match["rank"])
        if match["local"]:
            offsets[rank - int(match["local"])] += 1
        else:
            by_label[match["task"] or match["pod"]].add(rank)
    for match in _first(_TABLE, whole):
        offsets[int(match["rank"]) - int(match["local"])] += 1
        if match["task"] or match["pod"]:
            by_label[match["task"] or match["pod"]].add(int(match["rank"]))
    own = {int(match["rank"]) for match in _first(_OWN, whole)}
    in_table = {int(match["rank"]) for match in _first(_TABLE, whole)}
    within = Counter(int(match["rank"]) for match in _first(_WITHIN, whole))
    offset = next(iter(offsets)) if len(offsets) == 1 else None
    return Labels(
        offset,
        _names_nodes(by_label) or any(True for _ in _first(_AGENT, whole)),
        next(iter(own)) if len(own) == 1 else None,
        len(own | in_table) > 1 or _SEVERAL in whole,
        max(within.values(), default=0) > 1 or min(within, default=offset or 0) < (offset or 0),
        len({match["host"] for match in _first(_NCCL_HOST, whole)}) > 1 or max(own | in_table, default=0) >= _NODE,
        len(offsets) > 1,
        _processes(whole),
    )


def _processes(whole: bytes) -> dict[int, int]:
    """By process its rank; without numbers that two hosts gave to processes of theirs."""
    told: dict[int, set[int]] = defaultdict(set)
    for match in (*_first(_PROCESS, whole), *_first(_WORKER, whole)):
        told[int(match["pid"])].add(int(match["rank"]))
    return {process: ranks.pop() for process, ranks in told.items() if len(ranks) == 1}


def _first(pattern: re.Pattern[bytes], whole: bytes) -> Iterable[re.Match[bytes]]:
    """The first matches, if the file has the words that every match has: most files do not."""
    if _WORDS[pattern] not in whole:
        return
    for count, match in enumerate(pattern.finditer(whole)):
        if count >= _TOLD:
            return
        yield match


def _names_nodes(by_label: dict[bytes, set[int]]) -> bool:
    """One label stands before several ranks, or before one that it does not name."""
    if any(len(ranks) > 1 for ranks in by_label.values()):
        return True
    return any(label.isdigit() and {int(label)} != ranks for label, ranks in by_label.items())
