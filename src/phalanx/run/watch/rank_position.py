"""Reads a rank's stack: does it wait in a collective, for its data loader, for its peers to come, or is it elsewhere?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from phalanx.model import Frame
from phalanx.run.watch.locks import LockWait, lock_wait_of
from phalanx.run.watch.loops import Pass, is_common_path, passes_of
from phalanx.run.watch.partners import Partner, is_point_to_point, partner_of, request_at
from phalanx.run.watch.stacks import OUR_THREADS, ProcessStacks, Thread
from phalanx.sources.rank_conditions import condition_above, name_of
from phalanx.sources.user_code import source_line

# Functions that return only when other ranks have come, each behind the file it stands in.
_COLLECTIVES = re.compile(
    r"torch/distributed/distributed_c10d\.py (?:(?:all_reduce|reduce|broadcast|all_gather|gather|scatter|reduce_scatter|all_to_all"
    r"|barrier|monitored_barrier|send|recv|batch_isend_irecv)(?:_coalesced|_into_tensor|_tensor|_object|_object_list|_single)?)$"
    r"|torch/distributed/_functional_collectives\.py (?:wait_tensor|all_\w|reduce_scatter|broadcast)"
    r"|torch/distributed/pipelining/schedules\.py _wait_batch_p2p$"
    r"|jax/experimental/multihost_utils\.py (?:process_allgather|broadcast_one_to_all|sync_global_devices|assert_equal)"
    r"|horovod/torch/mpi_ops\.py (?:synchronize|barrier|join|allreduce|allgather|broadcast|alltoall)"
    r"|horovod/tensorflow/\S* _?(?:allreduce|allgather|broadcast|alltoall|join|barrier)"
    # also within a distributed iterator, which asks all workers whether they have data left
    r"|tensorflow/python/distribute/cross_device_ops\.py (?:reduce|batch_reduce|broadcast|_?gather)$"
    r"|mpi4py\S* [A-Za-z]"
)
_STARTS = re.compile(
    r"torch/distributed/distributed_c10d\.py (?:init_process_group|new_group|_store_based_barrier|split_group)"
    r"|torch/distributed/rendezvous\.py "
    r"|horovod/common/basics\.py init$"
    r"|tensorflow/python/distribute/collective_all_reduce_strategy\.py (?:_initialize_multi_worker|__init__)"
    r"|jax/_src/distributed\.py initialize"
)
# A graph of TensorFlow that runs: a rank that stands in it and computes nothing waits for the other workers.
_GRAPHS = "tensorflow/python/eager/execute.py"
# JAX compiles collectives into the step: no Python frame tells of them, but a thread that computes nothing waits for the device, and so for its peers.
_COMPILED = re.compile(r"/jax/(?:_src|experimental)/")
_SCRIPT_OPS = "tensorflow/python/ops/script_ops.py"  # functions of the script within a pipeline
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
    compiled: bool = False,
) -> RankPosition:
    """From the stacks of a rank and its children; `outstanding` if a collective was entered and is not done, `compiled` if the main thread
    waits in native code that may hold some."""
    main = stacks.main
    if main is None or not main.frames:
        return RankPosition(rank, Doing.UNKNOWN, pid=stacks.pid)
    # the module's own frame is the last to go; after it only what was registered for the end, and threads that are waited for
    leaving = all(frame.function != "<module>" and "runpy" not in frame.path for frame in main.frames)
    mine = tuple(frame for frame in main.frames if frame.is_user_code)
    last = (mine or (leaving and _beside(stacks)) or main.frames)[-1]
    frame = Frame(last.file, last.line, last.function, source_line(last.file, last.line))
    is_innermost = main.frames[-1] is last
    doing, call = _doing(main.frames, frame, outstanding, is_idle=is_idle, is_innermost=is_innermost)
    asleep = _SLEEP.search(frame.source) if is_innermost else None
    lock = lock_wait_of(stacks) if doing is Doing.ELSEWHERE and is_idle else None
    if compiled and is_idle and doing is Doing.ELSEWHERE and not (asleep or lock or leaving):
        doing, call = _compiled(main.frames)
    condition, above = condition_above(main.frames) or ("", None)
    elsewhere = doing is Doing.ELSEWHERE
    return RankPosition(
        rank,
        doing,
        call,
        frame,
        condition,
        above,
        asleep is not None,
        float(asleep["seconds"] or 0) if asleep is not None else 0.0,
        _workers_at(stacks, workers) if doing is Doing.DATA else (),
        pid=stacks.pid,
        partner=partner_of(main.frames, main.values, rank, size) if is_point_to_point(call) and main.values else None,
        passes=passes_of(main.frames, main.values),
        common=is_common_path(main.frames),
        stack=mine,
        leaving=leaving and elsewhere,
        lock=lock if elsewhere else None,
    )


def _beside(stacks: ProcessStacks) -> tuple[Frame, ...]:
    """Where the other threads of a rank that has left its script stand, in the user's code if they do."""
    others = [one.frames for one in stacks.threads if one is not stacks.main and not one.name.startswith(OUR_THREADS)]
    mine = tuple(frame for frames in others for frame in frames if frame.is_user_code)
    return mine or tuple(frames[-1] for frames in others if frames)


def _doing(
    frames: tuple[Frame, ...], at: Frame, outstanding: bool | None, *, is_idle: bool, is_innermost: bool
) -> tuple[Doing, str]:
    """By the library's frames, then by the graph that runs, then by the user's own line."""
    doing, call = doing_of(frames, outstanding)
    if doing is not Doing.ELSEWHERE:
        return doing, call
    if (is_idle or outstanding) and (graph := _graph_of(frames)):
        return Doing.COLLECTIVE, graph
    if is_innermost and (native := _WAIT_CALL.search(at.source)) is not None:
        # Work.wait() is native, as is a store's get(): no frame of its own. Sends and receives are not counted by every backend.
        made = request_at(at.file, at.line)
        if made is not None or outstanding:
            return Doing.COLLECTIVE, name_of(made) if made is not None else native["store"] or "wait"
    return doing, call


def doing_of(frames: tuple[Frame, ...], outstanding: bool | None = None) -> tuple[Doing, str]:
    """By the library's frames below the user's innermost one; the function that the user called is the name people know."""
    below = _below(frames)
    for calls, doing in ((_STARTS, Doing.CONNECT), (_COLLECTIVES, Doing.COLLECTIVE)):
        if (made := next((frame for frame in below if _is_in(frame, calls)), None)) is not None:
            # from Python 3.11 on py-spy tells the class, too
            return doing, made.function.rsplit(".", 1)[-1] if doing is Doing.COLLECTIVE else made.function
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


def _compiled(frames: tuple[Frame, ...]) -> tuple[Doing, str]:
    """A line of the script without a frame below it, or one of JAX's: the call that the script made is what people know."""
    if not frames[-1].is_user_code and not _COMPILED.search(frames[-1].file):
        return Doing.ELSEWHERE, ""
    return Doing.COLLECTIVE, next((frame.function for frame in _below(frames)), "a compiled JAX function")


def _below(frames: tuple[Frame, ...]) -> list[Frame]:
    """The library's frames below the user's innermost one, the function that the user called first."""
    below: list[Frame] = []
    for frame in reversed(frames):
        if frame.is_user_code:
            break
        below.append(frame)
    return below[::-1]


def _is_in(frame: Frame, calls: re.Pattern[str]) -> bool:
    name = frame.function.rsplit(".", 1)[-1]  # from Python 3.11 on py-spy tells the class, too
    return calls.search(f"{frame.path} {name}") is not None


def _workers_at(stacks: ProcessStacks, workers: tuple[ProcessStacks, ...]) -> tuple[Frame, ...]:
    """Where those stand that make the data: processes of PyTorch's loader, threads in which TensorFlow runs functions of the script."""
    found = [frame for worker in workers if (frame := _worker_frame(worker)) is not None]
    for thread in script_threads(stacks):
        last = [frame for frame in thread.frames if frame.is_user_code][-1]
        found.append(Frame(last.file, last.line, last.function, source_line(last.file, last.line)))
    return tuple(found)


def script_threads(stacks: ProcessStacks) -> list[Thread]:
    """The threads in which TensorFlow runs functions of the script, as a generator that feeds a tf.data pipeline."""
    return [
        thread
        for thread in stacks.threads
        if thread is not stacks.main
        and any(frame.is_user_code for frame in thread.frames)
        and any(_SCRIPT_OPS in frame.path for frame in thread.frames)
    ]


def _worker_frame(worker: ProcessStacks) -> Frame | None:
    """Where a data loader's worker is in the user's code; None for one that waits for work."""
    frames = worker.main.frames if worker.main is not None else ()
    # a forked worker has the script's own frames at its root: only those below the worker's loop count
    loops = [
        number
        for number, frame in enumerate(frames)
        if "_utils/worker.py" in frame.file or "_utils/fetch.py" in frame.file
    ]
    later = [frame for frame in frames[loops[-1] :] if frame.is_user_code] if loops else []
    if not later:
        return None
    last = later[-1]
    return Frame(last.file, last.line, last.function, source_line(last.file, last.line))
