"""Ranks that raise, run out of memory or are killed, and what the others see of it."""

from __future__ import annotations

from phalanx.zoo.consoles import acts, endings
from phalanx.zoo.consoles.formats import render
from phalanx.zoo.consoles.situation import Situation
from phalanx.zoo.consoles.stage import Stage

_MEMORY = ("fix-batch-size-or-data-partition", "fix-memory-or-core-setting")
_HOST_MEMORY = ("fix-memory-or-core-setting", "fix-batch-size-or-data-partition")
# where only the user's code can be wrong, no fix is right, too
_CODE = ("", "fix-dataset", "fix-behavior-logic", "other", "fix-dataset-api-usage")


def _raised(stage: Stage) -> tuple[int, ...]:
    """A rank raises in the user's code; the launcher ends the others at once."""
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    acts.traceback(stage, culprit, "KeyError: 'labels'", place="data")
    endings.collapse(stage, tells={culprit: "who what"})
    return (culprit,)


def _raised_others_time_out(stage: Stage) -> tuple[int, ...]:
    """A rank raises but its process stays (a thread holds it); the others wait until the time-out."""
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    acts.traceback(stage, culprit, "KeyError: 'labels'", place="data")
    stage.deaths.clear()
    stuck, main = acts.hold(stage, {culprit: 0})
    acts.time_out(stage, stuck, main, tells="")
    endings.collapse(stage)
    return (culprit,)


def _raised_others_see_remote(stage: Stage) -> tuple[int, ...]:
    """A rank raises and exits; ranks on other nodes see the lost connection before their agents end them."""
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    _, main = acts.hold(stage, {culprit: 0})
    acts.traceback(stage, culprit, "ValueError: too many values to unpack (expected 2)", place="data")
    acts.peers_lose(stage, [culprit], main, at=stage.clock + 0.8)
    endings.collapse(stage, tells={culprit: "who what"})
    return (culprit,)


def _out_of_memory(stage: Stage) -> tuple[int, ...]:
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    acts.traceback(stage, culprit, oom_text(stage, culprit))
    if stage.job.nodes > 1 and stage.rng.random() < 0.5:
        _, main = acts.hold(stage, {culprit: 0})
        acts.peers_lose(stage, [culprit], main, at=stage.clock + 0.8)
    endings.collapse(stage, tells={culprit: "who"})
    return (culprit,)


def oom_text(stage: Stage, rank: int) -> str:
    return render(
        "torch",
        "oom",
        stage.job.torch,
        asked=f"{stage.rng.choice((2.5, 1.25, 4.0)):.2f} GiB",
        device=stage.job.local(rank),
        total="79.15 GiB",
        free="812.31 MiB",
        used="78.35 GiB",
        allocated="74.61 GiB",
        reserved="76.90 GiB",
        spare="2.29 GiB",
    )


def _oom_killer(stage: Stage) -> tuple[int, ...]:
    """The kernel kills a rank for memory; the launcher sees only SIGKILL."""
    acts.start(stage)
    acts.train(stage)
    job = stage.job
    culprit = stage.pick()
    node = job.node(culprit)
    memory = {
        "vm": 512000000,
        "rss": 401234567,
        "shm": 1234567,
        "tables": 901234,
        "pid": job.pids[culprit],
        "name": "python",
    }
    stage.kernel(node, render("kernel", "oom.invoked", "any", name="pt_main_thread"))
    stage.kernel(node, render("kernel", "oom.cgroup", "any", **memory), tells="why who what")
    if stage.launcher == "srun":
        number = 400000 + job.seed % 90000
        stage.scheduler(stage.launch("slurm.oom", count=1, job=number), at=stage.clock + 0.2, tells="why what")
    stage.deaths.append((stage.clock + 0.1, culprit, -9))
    endings.collapse(stage, tells={culprit: "who"})
    return (culprit,)


def _killed(stage: Stage) -> tuple[int, ...]:
    """Somebody sends SIGKILL; nothing says who or why."""
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    stage.deaths.append((stage.clock + 0.1, culprit, -9))
    endings.collapse(stage, tells={culprit: "who what why"})
    return (culprit,)


def _node_lost(stage: Stage) -> tuple[int, ...]:
    """A node goes away with all of its ranks; the others see lost connections."""
    acts.start(stage)
    acts.train(stage)
    job = stage.job
    node = stage.rng.randrange(1, job.nodes)
    lost = list(job.ranks_of(node))
    _, main = acts.hold(stage, dict.fromkeys(lost, 0))
    # nothing more is printed on the node itself
    acts.peers_lose(stage, lost, main, at=stage.clock + 20)
    if stage.launcher == "srun":
        text = stage.launch("slurm.node_fail", host=job.hosts[node])
        stage.scheduler(text, at=stage.clock + 25, tells="why who what")
        cancelled = stage.launch(
            "slurm.job_cancelled",
            job=400000 + job.seed % 90000,
            host=job.hosts[0],
            why=" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
        )
        stage.scheduler(cancelled, at=stage.clock + 26, tells="why what")
    endings.collapse(stage)
    stage.mark("Connection closed by remote peer", "what")
    return tuple(lost)


def _segfault(stage: Stage) -> tuple[int, ...]:
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    stage.rank(
        culprit,
        'Fatal Python error: Segmentation fault\n\nThread 0x00007f2b4c7fe700 (most recent call first):\n  File "/workspace/model.py", line 221 in forward\n  File "/workspace/train.py", line 214 in train_step',
        tells="what why who",
    )
    stage.deaths.append((stage.clock + 0.1, culprit, -11))
    endings.collapse(stage, tells={culprit: "who what why"})
    return (culprit,)


def _worker_killed(stage: Stage) -> tuple[int, ...]:
    """A data loader worker is killed; its rank raises."""
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    pid = stage.job.pids[culprit] + 4000
    text = f"RuntimeError: DataLoader worker (pid {pid}) is killed by signal: Killed. "
    acts.traceback(stage, culprit, text, place="data")
    endings.collapse(stage, tells={culprit: "who"})
    return (culprit,)


def _bus_error(stage: Stage) -> tuple[int, ...]:
    """/dev/shm is full: a data loader worker gets SIGBUS."""
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    pid = stage.job.pids[culprit] + 4000
    stage.rank(
        culprit,
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        tells="what why",
    )
    text = f"RuntimeError: DataLoader worker (pid(s) {pid}) exited unexpectedly"
    acts.traceback(stage, culprit, text, place="data", tells="")
    endings.collapse(stage)
    return ()


def _store_host_gone(stage: Stage) -> tuple[int, ...]:
    """Rank 0's process, which serves the store, is gone; the others' monitors cannot reach it."""
    acts.start(stage)
    acts.train(stage)
    job = stage.job
    stage.deaths.append((stage.clock, 0, -9))
    for rank in range(1, min(job.world, 64)):
        at = stage.clock + 0.5 + stage.rng.random()
        peer = {
            "fd": 60 + rank % 8,
            "host": job.host(rank),
            "port": 41000 + rank,
            "master": job.hosts[0],
            "master_port": 29500,
        }
        name = stage.rng.choice(("store.recv", "store.send"))
        error = render("torch", name, job.torch, **peer)
        if job.torch in ("1.13", "2.0", "2.2"):
            text = render("torch", "store.unique_id", job.torch, group_rank=rank, key="1", error=error)
            acts.traceback(stage, rank, f"RuntimeError: {text}", place="collective", at=at, tells="what")
        else:
            fields = stage.group_fields(job.groups[0], rank)
            stage.c10(rank, "store.check_failed", at=at, level="head_warning", error=error, tells="what", **fields)
    endings.collapse(stage, tells={0: "who what why"})
    return (0,)


SITUATIONS = (
    Situation(
        "rank-raised",
        "a rank raises and the launcher ends the others",
        _raised,
        "prep.data-loading-failure",
        "unknown-exception",
        _CODE,
        also=("fail.attribute-not-found", "fail.other"),
    ),
    Situation(
        "rank-raised-others-time-out",
        "a rank raised and stays, the others time out",
        _raised_others_time_out,
        "prep.data-loading-failure",
        "unknown-exception",
        _CODE,
        also=("fail.attribute-not-found", "fail.other"),
    ),
    Situation(
        "rank-raised-others-see-remote",
        "a rank raised, ranks on other nodes see the remote error",
        _raised_others_see_remote,
        "prep.data-loading-failure",
        "unknown-exception",
        _CODE,
        nodes=2,
        also=("fail.other",),
    ),
    Situation(
        "cuda-out-of-memory",
        "one rank runs out of GPU memory",
        _out_of_memory,
        "fail.out-of-memory",
        "device-memory-exhausted",
        _MEMORY,
    ),
    Situation(
        "killed-by-oom-killer",
        "the kernel kills a rank for memory",
        _oom_killer,
        "fail.out-of-memory",
        "killed-by-oom-killer",
        _HOST_MEMORY,
    ),
    Situation(
        "killed-by-signal",
        "a rank gets SIGKILL from somebody",
        _killed,
        "fail.other",
        "killed-by-signal",
        ("fix-memory-or-core-setting", "other", "change-hardware"),
    ),
    Situation(
        "node-lost",
        "a node goes away with its ranks",
        _node_lost,
        "fail.other",
        "node-of-the-job-vanished",
        ("change-hardware", "other", "fix-network-setting", "fix-behavior-logic", "fix-communication-configuration"),
        nodes=2,
        also=("fail.communication-error",),
    ),
    Situation(
        "segmentation-fault",
        "a rank dies in native code",
        _segfault,
        "fail.segmentation-fault",
        "native-crash",
        ("fix-dependency-version", "fix-framework-version"),
    ),
    Situation(
        "loader-worker-killed",
        "a data loader worker is killed",
        _worker_killed,
        "prep.data-loading-failure",
        "loader-worker-killed",
        ("fix-memory-or-core-setting", "fix-batch-size-or-data-partition", "other"),
    ),
    Situation(
        "loader-shared-memory",
        "a data loader worker gets SIGBUS from a full /dev/shm",
        _bus_error,
        "fail.memory-issue",
        "shared-memory-too-small",
        ("fix-memory-or-core-setting",),
    ),
    Situation(
        "store-host-gone",
        "rank 0, which serves the store, is killed",
        _store_host_gone,
        "fail.other",
        "killed-by-signal",
        ("fix-memory-or-core-setting", "other", "change-hardware"),
        launcher=None,
    ),
)
