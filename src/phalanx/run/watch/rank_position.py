"""Reads a rank's stack: does it wait in a collective, for its data loader, for its peers to come, or is it elsewhere?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from phalanx.model import Frame
from phalanx.run.watch.arguments import name_of
from phalanx.run.watch.locks import LockWait, lock_wait_of
from phalanx.run.watch.loops import Pass, is_common_path, passes_of
from phalanx.run.watch.partners import Partner, is_point_to_point, partner_of, request_at
from phalanx.run.watch.stacks import OUR_THREADS, ProcessStacks
from phalanx.sources.user_code import condition_above, source_line

# Functions that return only when other ranks have come, by the file they stand in.
_COLLECTIVES = (
    ("torch/distributed/distributed_c10d.py", re.compile(
        r"(?:all_reduce|reduce|broadcast|all_gather|gather|scatter|reduce_scatter|all_to_all|barrier|monitored_barrier|send|recv"
        r"|batch_isend_irecv)(?:_coalesced|_into_tensor|_tensor|_object|_object_list|_single)?$")),
    ("torch/distributed/_functional_collectives.py", re.compile(r"wait_tensor|all_\w+|reduce_scatter\w*|broadcast\w*")),
    ("torch/distributed/pipelining/schedules.py", re.compile(r"_wait_batch_p2p$")),
    ("jax/experimental/multihost_utils.py", re.compile(r"process_allgather|broadcast_one_to_all|sync_global_devices|assert_equal")),
    ("horovod/torch/mpi_ops.py", re.compile(r"synchronize|barrier|join|allreduce\w*|allgather\w*|broadcast\w*|alltoall\w*")),
    ("horovod/tensorflow/", re.compile(r"_?(?:allreduce|allgather|broadcast|alltoall|join|barrier)\w*")),
    ("mpi4py", re.compile(r"[A-Za-z]+")),
)  # fmt: skip
_STARTS = (
    ("torch/distributed/distributed_c10d.py", re.compile(r"init_process_group|new_group|_store_based_barrier|split_group")),
    ("torch/distributed/rendezvous.py", re.compile(r".")),
    ("horovod/common/basics.py", re.compile(r"init$")),
    ("tensorflow/python/distribute/collective_all_reduce_strategy.py", re.compile(r"_initialize_multi_worker|__init__")),
    ("jax/_src/distributed.py", re.compile(r"initialize")),
)  # fmt: skip
# A graph of TensorFlow that runs: a rank that stands in it and computes nothing waits for the other workers.
_GRAPHS = "tensorflow/python/eager/execute.py"
_LOADERS = ("torch/utils/data/dataloader.py", "tensorflow/python/data/ops/iterator_ops.py")
_BACKWARD = ("torch/autograd/graph.py", "torch/autograd/__init__.py")
_WAIT_CALL = re.compile(
    r"\.wait\(|\bsynchronize\(|\bdist\.\w+\(|(?P<store>store\w*(?:\(\))?\.(?:get|multi_get|wait)\b)\("
)
_SLEEP = re.compile(r"\bsleep\((?P<seconds>\d+(?:\.\d+)?\b)?")
_MODEL_CALLS = frozenset(
    ("_wrapped_call_impl", "_call_impl", "__call__")
)  # how PyTorch runs a module that the script calls


class Doing(StrEnum):
    """What a rank does, as far as its stack tells."""

    COLLECTIVE = "collective"  # waits for other ranks in a collective
    CONNECT = "connect"  # waits for other ranks to come up
    DATA = "data"  # waits for its data loader
    STOPPED = "stopped"
    ENDED = "ended"
    ELSEWHERE = "elsewhere"
    UNKNOWN = "unknown"  # no stack


@dataclass(frozen=True, slots=True)
class RankPosition:
    """Where a rank stands."""

    rank: int
    doing: Doing
    call: str = ""  # the collective's name
    frame: Frame | None = None  # of the user's code
    condition: str = ""  # `if rank == 2`, where the rank stands under one
    condition_frame: Frame | None = None
    sleeps: bool = False
    sleeps_s: float = 0.0  # for how long, where the script says it in figures
    workers: tuple[Frame, ...] = ()  # where its data loader's processes stand
    code: int | None = None  # how it ended
    pid: int = 0
    holds_lock: bool = False  # native code keeps the interpreter's lock: the rank's other threads stand, too
    partner: Partner | None = None  # of a send or a receive, where its arguments tell
    passes: tuple[Pass, ...] = ()  # of the numbered loops that it is in
    leaving: bool = False  # the script is through, and the interpreter waits for something before it ends
    stack: tuple[Frame, ...] = ()  # the user's part of it, outermost frame first
    lock: LockWait | None = None  # that it waits for
    after: str = ""  # how far it had come when it ended: `after step 24`
    common: bool = False  # whether every pass makes the call, as far as the conditions around it tell


def position_of(
    rank: int,
    stacks: ProcessStacks,
    *,
    outstanding: bool | None,
    workers: tuple[ProcessStacks, ...] = (),
    is_idle: bool = False,
    size: int = 0,
) -> RankPosition:
    """From the stacks of a rank and its children; `outstanding` if a collective was entered and is not done."""
    main = stacks.main
    if main is None or not main.frames:
        return RankPosition(rank, Doing.UNKNOWN, pid=stacks.pid)
    doing, call = doing_of(main.frames, outstanding)
    if doing is Doing.ELSEWHERE and (is_idle or outstanding) and (graph := _graph_of(main.frames)):
        doing, call = Doing.COLLECTIVE, graph
    # the module's own frame is the last to go; after it only what was registered for the end, and threads that are waited for
    leaving = all(frame.function != "<module>" and "runpy" not in frame.path for frame in main.frames)
    mine = [frame for frame in main.frames if frame.is_user_code]
    if leaving and not mine:
        others = [
            thread.frames for thread in stacks.threads if thread is not main and not thread.name.startswith(OUR_THREADS)
        ]
        mine = [frame for frames in others for frame in frames if frame.is_user_code] or [
            frames[-1] for frames in others if frames
        ]
    frame = mine[-1] if mine else main.frames[-1]
    source = source_line(frame.file, frame.line)
    innermost_is_users = main.frames[-1] is frame
    if doing is Doing.ELSEWHERE and innermost_is_users and (native := _WAIT_CALL.search(source)) is not None:
        # Work.wait() is native, as is a store's get(): no frame of its own. Sends and receives are not counted by every backend.
        made = request_at(frame.file, frame.line)
        if made is not None or outstanding:
            doing, call = Doing.COLLECTIVE, name_of(made) if made is not None else native["store"] or "wait"
    asleep = _SLEEP.search(source) if innermost_is_users else None
    under = condition_above(main.frames)
    return RankPosition(
        rank,
        doing,
        call,
        Frame(frame.file, frame.line, frame.function, source),
        under[0] if under else "",
        under[1] if under else None,
        asleep is not None,
        float(asleep["seconds"] or 0) if asleep is not None else 0.0,
        tuple(found for worker in workers if (found := _worker_frame(worker)) is not None)
        if doing is Doing.DATA
        else (),
        None,
        stacks.pid,
        partner=partner_of(main.frames, main.values, rank, size) if is_point_to_point(call) and main.values else None,
        passes=passes_of(main.frames, main.values),
        common=is_common_path(main.frames),
        stack=tuple(one for one in main.frames if one.is_user_code),
        leaving=leaving and doing is Doing.ELSEWHERE,
        lock=lock_wait_of(stacks) if doing is Doing.ELSEWHERE and is_idle else None,
    )


def doing_of(frames: tuple[Frame, ...], outstanding: bool | None = None) -> tuple[Doing, str]:
    """By the library's frames below the user's innermost one; the function that the user called is the name people know."""
    below = _below(frames)
    for frame in below:
        if _matches(frame, _STARTS):
            return Doing.CONNECT, frame.function
    for frame in below:
        if _matches(frame, _COLLECTIVES):
            return Doing.COLLECTIVE, frame.function
    paths = [frame.path for frame in below]
    if any(path.endswith(loader) for path in paths for loader in _LOADERS):
        return Doing.DATA, ""
    if outstanding is not False and any(path.endswith(_BACKWARD) for path in paths):
        return (Doing.COLLECTIVE, "backward") if outstanding else (Doing.ELSEWHERE, "")
    if outstanding and any("torch/distributed/" in path or "torch/nn/parallel/" in path for path in paths):
        name = below[0].function.rsplit(".", 1)[-1]
        return Doing.COLLECTIVE, "forward" if name in _MODEL_CALLS else below[0].function
    return Doing.ELSEWHERE, ""


def _graph_of(frames: tuple[Frame, ...]) -> str:
    """The call by which the script runs a graph of TensorFlow, if it stands in one; for a bare function its own name is unknown."""
    if not frames or _GRAPHS not in frames[-1].path:
        return ""
    called = [frame.function for frame in _below(frames) if "distribute/" in frame.file or "keras/" in frame.file]
    return called[0].rsplit(".", 1)[-1] if called else "a TensorFlow function"


def _below(frames: tuple[Frame, ...]) -> list[Frame]:
    """The library's frames below the user's innermost one, the function that the user called first."""
    below: list[Frame] = []
    for frame in reversed(frames):
        if frame.is_user_code:
            break
        below.append(frame)
    return below[::-1]


def _matches(frame: Frame, table: tuple[tuple[str, re.Pattern[str]], ...]) -> bool:
    path, name = frame.path, frame.function.rsplit(".", 1)[-1]  # from Python 3.11 on py-spy tells the class, too
    return any(part in path and pattern.match(name) for part, pattern in table)


def _worker_frame(worker: ProcessStacks) -> Frame | None:
    """Where a data loader's worker is in the user's code; None for one that waits for work."""
    if worker.main is None:
        return None
    mine = [frame for frame in worker.main.frames if frame.is_user_code]
    inside = any("_utils/worker.py" in frame.file or "_utils/fetch.py" in frame.file for frame in worker.main.frames)
    # a forked worker has the script's own frames at its root: only those below the worker's loop count
    if not inside or not mine:
        return None
    loop = max(number for number, frame in enumerate(worker.main.frames) if "_utils/" in frame.file)
    later = [frame for frame in worker.main.frames[loop:] if frame.is_user_code]
    if not later:
        return None
    return Frame(later[-1].file, later[-1].line, later[-1].function, source_line(later[-1].file, later[-1].line))
