"""What launchers and schedulers print when ranks of theirs have ended."""

from __future__ import annotations

import signal
from collections.abc import Mapping

from phalanx.zoo.consoles.stage import Stage


def collapse(stage: Stage, *, tells: Mapping[int, str] | None = None) -> None:
    """The launcher notices the ranks that ended (`stage.deaths`) and ends the others.

    `tells` says of which ranks the launcher's own words prove something: an exit status by which a rank is the first.
    """
    said = tells or {}
    if not stage.deaths:
        return
    stage.deaths.sort()
    stage.clock = max(stage.clock, stage.deaths[0][0])
    if stage.launcher in ("srun", "ray"):
        {"srun": _srun, "ray": _ray}[stage.launcher](stage, said)
    elif stage.launcher == "deepspeed":
        _deepspeed(stage, said)
    else:
        _torchrun(stage, said)


def _torchrun(stage: Stage, tells: Mapping[int, str]) -> None:
    job = stage.job
    for node in range(job.nodes):
        mine = [death for death in stage.deaths if job.node(death[1]) == node]
        if not mine:
            continue
        at = mine[0][0] + 0.5 + stage.rng.random() * 2
        # who ended by the time the agent looked; the rest is sent SIGTERM
        ended = [death for death in mine if death[0] <= at]
        dead = {rank for _, rank, _ in ended}
        agent = job.agent_pid(node)
        for rank in job.ranks_of(node):
            if rank not in dead:
                stage.agent(node, stage.launch("torchrun.closing", agent=agent, pid=job.pids[rank], at=at), at=at)
        _, first, code = ended[0]
        failed = stage.launch(
            "torchrun.failed", agent=agent, code=code, local=job.local(first), pid=job.pids[first], at=at
        )
        stage.agent(node, failed, at=at + 0.1)
        entries = [_entry(stage, index, *death) for index, death in enumerate(sorted(ended, key=lambda one: one[1]))]
        root = sorted(ended, key=lambda one: one[1]).index(ended[0])
        others = "\n".join(entry for index, entry in enumerate(entries) if index != root) or "  <NO_OTHER_FAILURES>"
        width = "=" * 60
        rule = "-" * 60
        table = (
            f"{stage.launch('torchrun.traceback')}\n{width}\ntrain.py FAILED\n{rule}\nFailures:\n{others}\n{rule}\n"
            f"Root Cause (first observed failure):\n{entries[root]}\n{width}"
        )
        proves = " ".join({word for _, rank, _ in ended for word in tells.get(rank, "").split()})
        stage.agent(node, table, at=at + 0.4, tells=proves)
    stage.clock += 5


def _entry(stage: Stage, index: int, at: float, rank: int, code: int) -> str:
    job = stage.job
    name = signal.Signals(-code).name if code < 0 else ""
    how = (
        f"Signal {-code} ({name}) received by PID {job.pids[rank]}"
        if code < 0
        else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    )
    return stage.launch(
        "torchrun.entry",
        index=index,
        time=f"{stage.when(at):%Y-%m-%d_%H:%M:%S}",
        host=job.host(rank),
        rank=rank,
        local=job.local(rank),
        code=code,
        pid=job.pids[rank],
        # newer releases name the signal behind the exit code
        signal_apart=f" ({name})" if name and job.torch in ("2.9", "2.13") else "",
        message=how,
    )


def _srun(stage: Stage, tells: Mapping[int, str]) -> None:
    """One task a rank: the number of a task is the rank."""
    job = stage.job
    number = 400000 + job.seed % 90000
    how = {-6: "Aborted (core dumped)", -9: "Killed", -15: "Terminated", -11: "Segmentation fault (core dumped)"}
    first_at, _first, _ = stage.deaths[0]
    for at, rank, code in stage.deaths[:40]:
        words = how.get(code) or f"Exited with exit code {code}"
        text = stage.launch("srun.exit", host=job.host(rank), task=rank, how=words)
        stage.scheduler(text, at=at + 0.3, tells=tells.get(rank, ""))
    stage.scheduler(stage.launch("srun.terminate", job=number), at=first_at + 1)
    cancelled = stage.launch("slurm.cancelled", job=number, host=job.host(0), why="", at=first_at + 1.1)
    stage.scheduler(cancelled, at=first_at + 1.1)
    stage.scheduler(stage.launch("srun.abort"), at=first_at + 1.2)
    stage.clock += 5


def _deepspeed(stage: Stage, tells: Mapping[int, str]) -> None:
    job = stage.job
    for node in range(job.nodes):
        mine = [death for death in stage.deaths if job.node(death[1]) == node]
        if not mine:
            continue
        at, _rank, code = mine[0]
        for pid in (job.pids[one] for one in job.ranks_of(node)):
            stage.agent(node, stage.launch("deepspeed.kill", pid=pid, at=at + 1), at=at + 1)
        text = stage.launch("deepspeed.exit", last=job.per_node - 1, code=code, at=at + 1.5)
        stage.agent(node, text, at=at + 1.5)
        if job.nodes > 1:
            text = stage.launch("pdsh.exit", first=job.hosts[0], host=job.hosts[node], code=abs(code))
            stage.scheduler(text, at=at + 2)
    stage.clock += 5


def _ray(stage: Stage, tells: Mapping[int, str]) -> None:
    job = stage.job
    at, rank, _ = stage.deaths[0]
    text = stage.launch("ray.died", actor=f"{job.seed:08x}0001", pid=job.pids[rank], ip=job.ip(job.node(rank)))
    stage.scheduler(text, at=at + 2, tells="")
    stage.clock += 5
