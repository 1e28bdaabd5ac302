"""Takes a snapshot of a job: stacks of all ranks and their workers, and the flight recorders, into the bundle."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from phalanx import private
from phalanx.model.bundle import collectives_file, rank_folder, stacks_file
from phalanx.run.watch.heartbeat import HeartbeatFile
from phalanx.run.watch.journals import Journal, calls_file, read_journal, states_of
from phalanx.run.watch.processes import children_of, is_alive, python_children
from phalanx.run.watch.recorder import GroupState, read_dump
from phalanx.run.watch.stacks import ENDED, ProcessStacks, as_text, take_native, take_stacks

_MOST_WORKERS = 48  # a job with more has them alike
_ANSWER_S = 2.5  # how long the ranks may take to write what only they can
_NATIVE_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was seen of every living rank at one moment."""

    number: int
    stacks: Mapping[int, ProcessStacks]
    workers: Mapping[int, tuple[ProcessStacks, ...]]
    recorders: Mapping[int, Mapping[str, GroupState]]
    error: str = ""  # why stacks are missing, and what would help
    journals: Mapping[int, Journal] = field(default_factory=dict)  # of TensorFlow and Horovod


def take_snapshot(number: int, attempt: Path, pids: Mapping[int, int], beats: Mapping[int, HeartbeatFile]) -> Snapshot:
    """Ask the ranks for what only they can tell, look at them from outside meanwhile, and write both down."""
    for rank in pids:
        if rank in beats:
            beats[rank].ask(number)
    asked = time.monotonic()
    below = {pid: list(python_children(children)) for pid, children in children_of(pids.values()).items()}
    workers = [worker for found in below.values() for worker in found][:_MOST_WORKERS]
    # with whom a rank wants to meet, which root it names and in which pass it is stand in its variables; they are not written down
    taken = take_stacks(list(pids.values()), values=True)
    taken |= take_stacks([*(pid for pid in pids.values() if taken[pid].error), *workers])
    stacks: dict[int, ProcessStacks] = {}
    error = ""
    _wait_for_answers(number, {pid: beats[rank] for rank, pid in pids.items() if rank in beats}, asked + _ANSWER_S)
    for rank, pid in pids.items():
        folder = rank_folder(attempt, rank)
        own = taken[pid]
        error = error or ("" if own.error == ENDED else own.error)
        stacks[rank] = own
        _write(folder / stacks_file(number), as_text([own, *(taken[child] for child in below[pid] if child in taken)]))
    recorders = {rank: read_dump(rank_folder(attempt, rank) / collectives_file(number)) for rank in pids}
    read = {rank: read_journal(rank_folder(attempt, rank) / calls_file(number)) for rank in pids}
    journals = {rank: found for rank, found in read.items() if found is not None}
    return Snapshot(
        number,
        stacks,
        {rank: tuple(taken[child] for child in below[pid] if child in taken) for rank, pid in pids.items()},
        {**states_of(journals), **{rank: found for rank, found in recorders.items() if found}},
        error,
        journals,
    )


def add_native(number: int, attempt: Path, pids: Mapping[int, int], timeout: float = 20.0) -> None:
    """Native stacks beside the Python ones, in files of their own: they take seconds, the report does not wait for them."""

    def one(rank: int) -> None:
        text = take_native(pids[rank], timeout)
        if text:
            _write(rank_folder(attempt, rank) / f"native-{number}.txt", text)

    with ThreadPoolExecutor(_NATIVE_AT_ONCE) as pool:
        list(pool.map(one, pids))


def _wait_for_answers(number: int, beats: Mapping[int, HeartbeatFile], until: float) -> None:
    """A rank that holds the interpreter's lock in native code never answers: the wait is bounded. Nor does one that has ended."""
    while time.monotonic() < until:
        beats = {
            pid: beat
            for pid, beat in beats.items()
            if (found := beat.read()) is not None and found.answered < number and is_alive(pid)
        }
        if not beats:
            return
        time.sleep(0.05)


def _write(path: Path, text: str) -> None:
    """A full disk costs this file, not the watch."""
    part = path.with_name(path.name + ".part")
    try:
        private.write_text(part, text)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
