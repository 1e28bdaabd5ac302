"""Jobs that are ended from outside, whose numbers go bad, and healthy jobs that look worse than they are."""

from __future__ import annotations

from functools import partial

from phalanx.zoo.consoles import acts, endings, trainers
from phalanx.zoo.consoles.formats import render
from phalanx.zoo.consoles.situation import Situation
from phalanx.zoo.consoles.situations.crashes import oom_text
from phalanx.zoo.consoles.situations.devices import XIDS
from phalanx.zoo.consoles.stage import Stage

_NOBODY = ("other", "fix-command-line")


def _ended(stage: Stage, why: str, reason: str) -> tuple[int, ...]:
    """The scheduler ends all ranks: its own words are the only ones that say why."""
    acts.start(stage)
    acts.train(stage)
    job = stage.job
    number = 400000 + job.seed % 90000
    if stage.launcher == "srun":
        text = stage.launch("slurm.job_cancelled", job=number, host=job.hosts[0], why=f" DUE TO {why}")
        stage.scheduler(text, tells="what why")
        stage.scheduler(stage.launch("srun.abort"), at=stage.clock + 0.1)
        for rank in range(min(job.world, 16)):
            stage.scheduler(
                stage.launch("srun.exit", host=job.host(rank), task=rank, how="Terminated"), at=stage.clock + 1
            )
        return ()
    text = stage.launch("kubernetes.evicted", reason=reason, message="Preempted in order to admit critical pod")
    stage.scheduler(text, tells="what why")
    for node in range(job.nodes):
        if stage.launcher == "deepspeed":
            stage.agent(node, stage.launch("deepspeed.signal"), at=stage.clock + 0.2)
        elif stage.launcher != "ray":
            agent = job.agent_pid(node)
            stage.agent(node, stage.launch("torchrun.death", agent=agent), at=stage.clock + 0.2)
            for rank in job.ranks_of(node):
                stage.agent(
                    node, stage.launch("torchrun.closing", agent=agent, pid=job.pids[rank]), at=stage.clock + 0.3
                )
    return ()


def _nan(stage: Stage) -> tuple[int, ...]:
    acts.start(stage)
    acts.train(stage)
    first = stage.steps
    for number in range(first + 1, first + 16):
        stage.clock += 2.5
        trainers.step(stage, number, loss=float("nan"))
    for words in ("loss nan", "loss: nan", "'loss': nan", "loss=nan"):
        stage.mark(words, "what why")
    return ()


def _loss_scale(stage: Stage) -> tuple[int, ...]:
    """Every step overflows until the loss scale is at its minimum (DeepSpeed's words)."""
    acts.start(stage)
    acts.train(stage)
    scale = 65536
    for _number in range(16):
        stage.clock += 2.5
        text = f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {max(scale // 2, 1)}"
        stage.rank(0, text, tells="what")
        scale = max(scale // 2, 1)
    text = "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."
    for rank in range(stage.job.world):
        acts.traceback(stage, rank, text, tells="what why")
    endings.collapse(stage)
    return ()


def _healthy(stage: Stage) -> tuple[int, ...]:
    acts.start(stage)
    acts.train(stage)
    trainers.finish(stage)
    return ()


def _healthy_warnings(stage: Stage) -> tuple[int, ...]:
    """Warnings of many kinds, none of which stops the job."""
    acts.start(stage)
    job = stage.job
    stage.rank(
        0,
        "/usr/local/lib/python3.11/site-packages/torch/utils/data/dataloader.py:557: UserWarning: This DataLoader will create 16 worker processes in total. Our suggested max number of worker in current system is 8, which is smaller than what this DataLoader is going to create.",
    )
    for rank in range(min(job.world, 8)):
        stage.rank(
            rank,
            "/workspace/train.py:88: FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cuda', args...)` instead.",
        )
    acts.train(stage, 60)
    stage.rank(0, "WARNING: gradient norm 12.4 above 10, clipping; if this error persists lower the learning rate")
    stage.rank(
        1, "retry 1/5: HTTPSConnectionPool(host='metrics.internal', port=443): Read timed out. (read timeout=10)"
    )
    acts.train(stage, 60, first=stage.steps)
    for rank in range(min(job.world, 16)):
        fields = stage.group_fields(job.groups[0], rank)
        stage.c10(rank, "destroy.warning", at=stage.clock + 4, level="head_warning", **fields)
    trainers.finish(stage)
    return ()


def _healthy_retries(stage: Stage) -> tuple[int, ...]:
    """NCCL reports retried connections and a port event while it starts; all goes on."""
    acts.start(stage, connect=False)
    for rank in range(min(stage.job.world, 16)):
        peer = f"{stage.job.ip(0)}<43211>"
        stage.nccl_info(rank, "retry.info", peer=peer, errno_text="Connection refused")
        acts.communicator(stage, rank)
    stage.nccl(0, "ib.async", event="port active", hca="mlx5_1")
    acts.train(stage, 120)
    trainers.finish(stage)
    return ()


def _healthy_xid63(stage: Stage) -> tuple[int, ...]:
    """A row is remapped: the kernel notes it, the job goes on."""
    acts.start(stage)
    acts.train(stage, 60)
    rank = stage.pick()
    text = XIDS[63].format()
    stage.kernel(stage.job.node(rank), render("kernel", "xid", "any", pci=stage.job.pci(rank), xid=63, text=text))
    acts.train(stage, 60, first=stage.steps)
    trainers.finish(stage)
    return ()


def _healthy_restart(stage: Stage) -> tuple[int, ...]:
    """A rank runs out of memory, the elastic agent restarts the group, and the second attempt ends well."""
    acts.start(stage)
    acts.train(stage, 60)
    culprit = stage.rng.randrange(stage.job.per_node)
    acts.traceback(stage, culprit, oom_text(stage, culprit), tells="")
    stage.deaths.clear()
    agent = stage.job.agent_pid(0)
    failed = stage.launch(
        "torchrun.failed", agent=agent, code=1, local=stage.job.local(culprit), pid=stage.job.pids[culprit]
    )
    stage.agent(0, failed, at=stage.clock + 1)
    stage.agent(0, stage.launch("torchrun.restart", agent=agent, left=2), at=stage.clock + 1.1)
    stage.clock += 30
    stage.restarts.append(stage.clock)
    acts.start(stage)
    acts.train(stage, 120, first=stage.steps - 20)
    trainers.finish(stage)
    return ()


SITUATIONS = (
    Situation(
        "time-limit",
        "the scheduler's time limit ends the job",
        partial(_ended, why="TIME LIMIT", reason="DeadlineExceeded"),
        "fail.other",
        "job-hit-time-limit",
        _NOBODY,
    ),
    Situation(
        "preempted",
        "the scheduler preempts the job",
        partial(_ended, why="PREEMPTION", reason="Preempting"),
        "fail.other",
        "job-hit-time-limit",
        _NOBODY,
    ),
    Situation(
        "node-drained",
        "an operator drains a node or scales the job down",
        partial(_ended, why="JOB REQUEUE", reason="NodeShutdown"),
        "fail.other",
        "job-hit-time-limit",
        _NOBODY,
    ),
    Situation(
        "loss-nan",
        "the loss becomes NaN",
        _nan,
        "perf.non-convergence",
        "loss-not-finite",
        ("fix-learning-rate", "fix-data-type", "fix-optimizer", "fix-dataset", "fix-loss-function"),
    ),
    Situation(
        "loss-scale-collapse",
        "the loss scale falls to its minimum",
        _loss_scale,
        "perf.non-convergence",
        "fp16-overflow-at-every-step",
        ("fix-learning-rate", "fix-data-type"),
    ),
    Situation("healthy", "nothing happens", _healthy),
    Situation("healthy-warnings", "warnings that stop nothing", _healthy_warnings),
    Situation("healthy-retries", "connections that are retried", _healthy_retries),
    Situation("healthy-xid-63", "the kernel notes a remapped row", _healthy_xid63),
    Situation("healthy-elastic-restart", "an elastic restart that ends well", _healthy_restart, launcher="torchrun"),
)
