"""What a framework itself named as the culprit: torchrun's root cause, Horovod's missing ranks, TensorFlow's tasks.

Root Cause (first observed failure):           torchrun: the smallest time stamp in whole seconds
[0]:
  rank      : 2 (local_rank: 2)
Missing ranks:                                 Horovod's stall inspector
2: [allreduce.epoch_loss]
Process name: [prterun-node0-1936@1,2]         mpirun and horovodrun: the first to end badly
Error reported from /job:worker/task:1:        TensorFlow's coordination service
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from phalanx.zoo.fault import Fault

# a launcher's prefix may stand before each line
_LEAD = r"^(?:\[[^\]\n]*\](?:<\w+>)?:? ?|\S+ \d+ \d\d:\d\d:\d\d\S* )*\s*"
_TORCHRUN = re.compile(
    r"Root Cause \(first observed failure\):.*?^\s*(?:\S+: )?\s*rank\s+: (\d+) ", re.DOTALL | re.MULTILINE
)
_STALL = re.compile(rf"Missing ranks:\s*\n((?:{_LEAD}\d+: \[.*\n?)+)", re.MULTILINE)
_STALLED_RANK = re.compile(r"(\d+): \[")
_FIRST_TO_END = re.compile(r"The first process to do so was:\s+Process name: (?:\[\S+@\d+,(\d+)\]|(\d+))")
_SPAWN = re.compile(r"(?:-- Process|ProcessExitedException: process) (\d+) terminated")
_BARRIER = re.compile(r"Ranks? (\d+(?:, ?\d+)*) failed to pass monitoredBarrier")
_DDP = re.compile(r"(?:^|\W)Rank (\d+) has \d+ params, while|did not receive grad for rank (\d+):")
_TENSORFLOW = re.compile(
    r"Error reported from /job:(\w+)/(?:replica:\d+/)?task:(\d+)|following tasks are unhealthy[^/]*/job:(\w+)/(?:replica:\d+/)?task:(\d+)"
)
_LAUNCHERS = ("torchrun's root cause", "mpirun", "horovodrun", "torch.multiprocessing")
_LARGEST_LOG = 8 << 20


@dataclass(frozen=True, slots=True)
class Named:
    """Who was named, and by what. Both are empty where nobody was."""

    ranks: frozenset[int] = frozenset()
    by: tuple[str, ...] = ()


def named_by_framework(fault: Fault, logs: Path) -> Named:
    """The ranks that the framework or its launcher names in the logs as the one that failed or is missing.

    A watcher that looks for the culprit says more than a launcher that tells who ended first; where both
    speak, the launcher is not counted against the framework.
    """
    tasks = _ranks_of_tasks(fault)
    said = [accusation for text in _texts(logs) for accusation in _accusations(text, tasks)]
    if any(who not in _LAUNCHERS for who, _ in said):
        said = [(who, rank) for who, rank in said if who not in _LAUNCHERS]
    return Named(frozenset(rank for _, rank in said), tuple(sorted({who for who, _ in said})))


def _accusations(text: str, tasks: dict[tuple[str, int], int]) -> Iterator[tuple[str, int]]:
    for match in _TORCHRUN.finditer(text):
        yield "torchrun's root cause", int(match[1])
    for match in _STALL.finditer(text):
        for line in match[1].splitlines():
            if found := _STALLED_RANK.search(line):
                yield "Horovod's stall inspector", int(found[1])
    for match in _FIRST_TO_END.finditer(text):
        yield ("mpirun", int(match[1])) if match[1] else ("horovodrun", int(match[2]))
    for match in _SPAWN.finditer(text):
        yield "torch.multiprocessing", int(match[1])
    for match in _BARRIER.finditer(text):
        yield from (("monitored_barrier", int(rank)) for rank in match[1].split(","))
    for match in _DDP.finditer(text):
        yield "DistributedDataParallel", int(match[1] or match[2])
    for match in _TENSORFLOW.finditer(text):
        task = (match[1] or match[3], int(match[2] or match[4]))
        if task in tasks:
            yield "TensorFlow's coordination service", tasks[task]


def _ranks_of_tasks(fault: Fault) -> dict[tuple[str, int], int]:
    """Which process of the zoo is which task of TensorFlow's cluster: said by each one's TF_CONFIG."""
    found = {}
    for rank, variables in fault.run.rank_env.items():
        try:
            task = json.loads(variables.get("TF_CONFIG", ""))["task"]
            found[str(task["type"]), int(task["index"])] = rank
        except (ValueError, KeyError, TypeError):
            continue
    return found or {("worker", rank): rank for rank in range(fault.run.world_size)}


def _texts(logs: Path) -> Iterator[str]:
    for file in sorted(logs.rglob("*")):
        if file.is_file() and file.suffix != ".json":
            raw = file.read_bytes()
            raw = gzip.decompress(raw) if file.suffix == ".gz" else raw
            yield raw[-_LARGEST_LOG:].decode("utf-8", "replace")
