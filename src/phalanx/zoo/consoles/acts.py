"""What happens in many faults: the job starts and trains, watchdogs time out, peers see a lost connection, a rank raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phalanx.zoo.consoles import trainers
from phalanx.zoo.consoles.formats import formats, render
from phalanx.zoo.consoles.program import Position, waits
from phalanx.zoo.consoles.stage import Stage

SHORT = {
    "ncclUnhandledCudaError": (
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "Call to CUDA function failed.",
    ),
    "ncclSystemError": (
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "System call (e.g. socket, malloc) or external library call failed or device error. ",
    ),
    "ncclInternalError": (
        "internal error - please report this issue to the NCCL developers",
        "Internal check failed.",
    ),
    "ncclInvalidUsage": (
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "This usually reflects invalid usage of NCCL library.",
    ),
    "ncclRemoteError": (
        "remote process exited or there was a network error",
        "A call failed possibly due to a network error or a remote process exiting prematurely.",
    ),
}  # torch/csrc/distributed/c10d/NCCLUtils.cpp, getNcclErrorDetailStr; nccl src/init.cc, ncclGetErrorString


def start(stage: Stage, *, connect: bool = True) -> None:
    """The first lines of a job up to the first step; `connect=False` stops before NCCL has made its communicator."""
    job = stage.job
    if stage.launcher in ("torchrun", "accelerate"):
        for node in range(job.nodes):
            stage.agent(node, stage.launch("torchrun.omp", agent=job.agent_pid(node)), kind="start")
    trainers.banner(stage)
    stage.clock += 20
    stage.rank(0, render("nccl", "version", job.nccl, nccl=job.nccl, cuda=job.cuda), kind="nccl-version")
    for rank in range(min(job.world, 64)):
        node = job.node(rank)
        fields: dict[str, Any] = {"interface": "eth0", "ip": job.ip(node), "link": "IB", "network": "IB"}
        for name in ("init.bootstrap", "init.plugin", "init.ib", "init.network"):
            stage.nccl_info(rank, name, at=stage.clock + rank * 0.001, **fields)
        if connect:
            communicator(stage, rank)
    stage.clock += 15


def communicator(stage: Stage, rank: int) -> None:
    """NCCL reports the default group's communicator made."""
    job = stage.job
    after = (rank + 1) % job.world
    fields: dict[str, Any] = {
        "comm": 0x55D000000000 + job.seed * 16 + rank * 4096,
        "comm_id": job.seed * 2654435761 % (1 << 63),
        "group_rank": rank,
        "nranks": job.world,
        "device": job.local(rank),
        "bus": job.bus(rank),
        "next": after,
        "next_device": job.local(after),
        "next_bus": job.bus(after),
    }
    for name in ("init.start", "init.rings", "init.trees", "init.complete"):
        stage.nccl_info(rank, name, at=stage.clock + 2 + rank * 0.001, **fields)
    for channel in range(2):
        stage.nccl_info(rank, "init.channel", at=stage.clock + 1 + rank * 0.001, channel=channel, **fields)


def train(stage: Stage, steps: int | None = None, *, first: int = 0) -> None:
    """So many steps with the lines that the trainer prints of them."""
    count = steps if steps is not None else stage.rng.randrange(40, 400)
    shown = min(count, 30)
    begin = first if first else stage.rng.randrange(0, 40000)
    for index in range(shown):
        stage.clock += 2.5
        trainers.step(stage, begin + count - shown + index + 1)
    stage.steps = begin + count


def hold(stage: Stage, absent: Mapping[int, int]) -> tuple[dict[int, Position], dict[int, Position]]:
    """Some ranks stay away from a call; see `program.waits`."""
    return waits(stage.job, stage.steps, stage.rng, absent)


def time_out(
    stage: Stage,
    stuck: Mapping[int, Position],
    main: Mapping[int, Position],
    *,
    ops: Mapping[int, tuple[str | None, int | None]] | None = None,
    tells: str = "what",
    who: str = "",
) -> None:
    """After the time-out, the watchdog of each rank that waits reports it and takes its process down.

    `ops` gives ranks whose call differs in operation or size. `who` is what the words of a rank that does not wait
    tell when newer releases make it report its own numbers.
    """
    job, release = stage.job, stage.job.torch
    begun = stage.clock
    stage.clock += job.timeout_ms / 1000
    order = sorted(stuck, key=lambda rank: (stage.rng.random(), rank))
    slack = 4000 if release in ("1.13", "2.0") else 95
    dumps = bool(formats("torch")["dump.received"].text(release))
    pause = 60.0 if dumps else 0.0
    for rank in order:
        position = stuck[rank]
        if position.call is None:
            continue
        ran = job.timeout_ms + stage.rng.randrange(3, slack)
        at = begun + ran / 1000 + stage.rng.random() * 0.2
        op, numel = (ops or {}).get(rank, (None, None))
        work = stage.work(rank, position, op, numel)
        error = render(
            "torch",
            "watchdog.timeout",
            release,
            group_rank=position.call.group.ranks.index(rank),
            work=work,
            ran=ran,
        )
        fields: dict[str, Any] = {
            **stage.group_fields(position.call.group, rank),
            "work": work,
            "ran": ran,
            "seq": position.seq,
            "enqueued": position.enqueued,
            "completed": position.completed,
            "error": error,
            **_python_call(op or position.call.op_of(rank), stage),
        }
        said = f"{tells} who" if rank in (ops or {}) else tells
        stage.c10(rank, "watchdog.timeout", at=at, tells=said, waits=True, **fields)
        for name in ("watchdog.status", "watchdog.trace_missing", "watchdog.trace"):
            stage.c10(rank, name, at=at + 0.001, waits=True, **fields)
        if dumps and rank == order[0]:
            stage.c10(rank, "dump.first", at=at + 0.002, **fields)
        take_down(stage, rank, at + pause + 0.003, fields)
    if dumps:
        _dumps(stage, main, order[0], begun + job.timeout_ms / 1000 + 1, set(stuck), who)
    stage.clock += pause + 1


def _python_call(op: str, stage: Stage) -> dict[str, Any]:
    names = {
        "ALLREDUCE": ("all_reduce", 2965),
        "_ALLGATHER_BASE": ("all_gather_into_tensor", 4083),
        "_REDUCE_SCATTER_BASE": ("reduce_scatter_tensor", 4502),
        "BROADCAST": ("broadcast", 2824),
        "SEND": ("send", 2492),
        "RECV": ("recv", 2540),
        "ALLTOALL_BASE": ("all_to_all_single", 4640),
        "BARRIER": ("barrier", 4900),
    }
    python, line = names.get(op, ("all_reduce", 2965))
    return {
        "python_op": python,
        "c10d_line": line,
        "function": "train_step",
        "place": f"/workspace/train.py:{200 + stage.job.seed % 150}",
    }


def take_down(stage: Stage, rank: int, at: float, fields: Mapping[str, Any], raised: str = "checkTimeout") -> None:
    """A process is taken down by its watchdog: SIGABRT, whatever was the reason."""
    release = stage.job.torch
    plain = {key: value for key, value in fields.items() if key != "level"}
    for name in ("watchdog.timeout_status", "watchdog.failed", "watchdog.down", "watchdog.terminated"):
        stage.c10(rank, name, at=at, **plain)
    addresses = {letter: 0x7F0000000000 + stage.rng.randrange(1 << 36) for letter in "abcdef"}
    stage.rank(
        rank,
        render(
            "torch",
            "watchdog.terminate",
            release,
            error=fields["error"],
            terminated=render("torch", "watchdog.terminated", release, **plain),
            raised=raised,
            line=formats("torch")["watchdog.timeout"].line(release) + 2,
            frames=render("torch", "frames", release, **addresses),
        ),
        at=at + 0.01 + stage.rng.random() * 0.3,
    )
    stage.deaths.append((at + 0.4, rank, -6))


def _dumps(stage: Stage, main: Mapping[int, Position], first: int, at: float, waiting: set[int], who: str) -> None:
    """The heartbeat monitors of all ranks report; their numbers are those of the default group only."""
    world = stage.job.groups[0]
    for rank, position in main.items():
        fields: dict[str, Any] = {
            **stage.group_fields(world, rank),
            "enqueued": position.enqueued,
            "completed": position.completed,
            "who": "this local rank" if rank == first else f" rank {first}",
        }
        when = at + stage.rng.random()
        if rank != first:
            stage.c10(rank, "dump.observed", at=when, **fields)
        stage.c10(rank, "dump.received", at=when + 0.0001, tells="" if rank in waiting else who, **fields)
        stage.c10(rank, "dump.preparing", at=when + 0.0002, **fields)


def nccl_text(stage: Stage, kind: str, last: str, *, line: int = 1970, checked: bool = True) -> str:
    """The text of the exception that PyTorch makes of an error of NCCL."""
    short, long = SHORT[kind]
    name = "nccl.error" if checked else "nccl.async"
    return render(
        "torch", name, stage.job.torch, line=line, short=short, nccl=stage.job.nccl, kind=kind, long=long, last=last
    )


def peers_lose(stage: Stage, lost: list[int], main: Mapping[int, Position], *, at: float, most: int = 64) -> None:
    """Ranks on other nodes see their connection to a process that is gone; they are victims."""
    job = stage.job
    gone = job.node(lost[0])
    others = [rank for rank in range(job.world) if job.node(rank) != gone][:most]
    for rank in others:
        when = at + stage.rng.random() * 3
        peer = f"{job.ip(gone)}<{40000 + stage.rng.randrange(20000)}>"
        last = stage.nccl(rank, "socket.closed", at=when, peer=peer)
        error = nccl_text(stage, "ncclRemoteError", last, checked=False)
        world = job.groups[0]
        position = main.get(rank) or Position(None, stage.steps, stage.steps, stage.steps - 1)
        work = render(
            "torch",
            "work",
            job.torch,
            seq=position.seq + 1,
            op="ALLREDUCE",
            numel_in=27304960,
            numel_out=27304960,
            timeout=job.timeout_ms,
        )
        fields: dict[str, Any] = {
            **stage.group_fields(world, rank),
            "error": error,
            "work": work,
            "seq": position.seq + 1,
            "enqueued": position.enqueued + 1,
            "completed": position.completed,
        }
        stage.c10(rank, "watchdog.exception", at=when, **fields)
        stage.c10(rank, "watchdog.status", at=when + 0.001, **fields)
        take_down(stage, rank, when + 0.1, fields, "checkForNCCLErrorsInternal")


def traceback(
    stage: Stage,
    rank: int,
    error: str,
    *,
    place: str = "forward",
    at: float | None = None,
    tells: str = "what why who",
    named: bool = False,
) -> None:
    """A rank raises out of the training loop and exits with status 1."""
    line = 180 + stage.job.seed % 90
    frames = {
        "forward": f'  File "/workspace/train.py", line {line}, in train_step\n    loss = model(batch)\n  File "/workspace/model.py", line {line + 40}, in forward\n    hidden = self.layers(hidden)',
        "data": f'  File "/workspace/train.py", line {line - 12}, in train_step\n    batch = collate(next(batches))\n  File "/workspace/data.py", line {line - 90}, in collate\n    labels = [row["labels"] for row in rows]',
        "collective": f'  File "/workspace/train.py", line {line + 7}, in train_step\n    dist.all_reduce(norm)\n  File "/usr/local/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", line 81, in wrapper\n    return func(*args, **kwargs)\n  File "/usr/local/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 2806, in all_reduce\n    work = group.allreduce([tensor], opts)',
        "setup": f'  File "/workspace/train.py", line {line - 120}, in setup\n    model = DistributedDataParallel(model, device_ids=[local_rank])\n  File "/usr/local/lib/python3.11/site-packages/torch/nn/parallel/distributed.py", line 835, in __init__\n    _verify_param_shape_across_processes(self.process_group, parameters)\n  File "/usr/local/lib/python3.11/site-packages/torch/distributed/utils.py", line 282, in _verify_param_shape_across_processes\n    return dist._verify_params_across_processes(process_group, tensors, logger)',
    }[place]
    head = f'Traceback (most recent call last):\n  File "/workspace/train.py", line 431, in <module>\n    main()\n  File "/workspace/train.py", line 412, in main\n    trainer.run()\n{frames}\n'
    stage.python(rank, head + error, at=at, tells=tells, named=named)
    stage.deaths.append(((stage.clock if at is None else at) + 0.5, rank, 1))
