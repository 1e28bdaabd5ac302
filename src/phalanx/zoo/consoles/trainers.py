"""The lines that training scripts and frameworks print of a healthy step, in the style of each."""

from __future__ import annotations

import math

from phalanx.zoo.consoles.stage import Stage


def banner(stage: Stage) -> None:
    """What the script says before it trains."""
    job = stage.job
    if stage.style == "megatron":
        stage.rank(
            0,
            f"using world size: {job.world}, data-parallel size: {job.world // 8}, context-parallel size: 1, "
            "tensor-model-parallel size: 4, pipeline-model-parallel size: 2",
            kind="start",
        )
    elif stage.style == "lightning":
        for rank in range(min(job.world, 32)):
            stage.rank(
                rank,
                f"Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/{job.world}",
                kind="start",
                named=True,
            )
        # lightning/fabric/utilities/distributed.py, _init_dist_connection
        rule = "-" * 100
        said = f"All distributed processes registered. Starting with {job.world} processes"
        stage.rank(0, f"{rule}\ndistributed_backend=nccl\n{said}\n{rule}\n", at=stage.clock + 5, kind="start")
    else:
        stage.rank(0, f"world size {job.world}, torch {job.torch}.0+cu{job.cuda.replace('.', '')}", kind="start")


def step(stage: Stage, number: int, *, loss: float | None = None, scale: float | None = None) -> None:
    """One step, printed by the rank that prints in that style."""
    job = stage.job
    value = loss if loss is not None else 1.8 + 6 / (1 + number / 500) + stage.rng.random() * 0.05
    when = stage.when(stage.clock)
    shown = "nan" if math.isnan(value) else f"{value:.4f}"
    printer = job.world - 1 if stage.style == "megatron" else 0
    if stage.style == "megatron":
        exponent = "nan" if math.isnan(value) else f"{value:.6E}"
        text = (
            f" [{when:%Y-%m-%d %H:%M:%S}] iteration {number:8d}/  500000 | consumed samples: {number * 1024:12d} | "
            f"elapsed time per iteration (ms): {2480 + stage.rng.random() * 40:.1f} | learning rate: 1.500000E-04 | "
            f"global batch size:  1024 | lm loss: {exponent} | loss scale: {scale or 1.0:.1f} | grad norm: "
            f"{'nan' if math.isnan(value) else f'{0.8 + stage.rng.random() * 0.2:.3f}'} | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |"
        )
    elif stage.style == "lightning":
        done = number % 1000
        text = (
            f"\rEpoch {number // 1000}:  {done // 10:2d}%|{'█' * (done // 100):<10}| {done}/1000 "
            f"[{done * 2 // 60:02d}:{done * 2 % 60:02d}<{20:02d}:00,  0.40it/s, v_num=3, train_loss={shown}]"
        )
    elif stage.style == "transformers":
        done = number % 10000
        text = (
            f"{{'loss': {shown}, 'grad_norm': {0.8 + stage.rng.random() * 0.2:.4f}, "
            f"'learning_rate': 2.9e-05, 'epoch': {number / 10000:.2f}}}\n"
            f"\r {done // 100:2d}%|{'█' * (done // 1000):<10}| {done}/10000 [1:{done % 60:02d}:00<5:12:10,  2.50s/it]"
        )
    elif stage.style == "deepspeed":
        stamp = f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03d}"
        text = (
            f"[{stamp}] [INFO] [logging.py:96:log_dist] [Rank 0] step={number}, skipped=0, lr=[3e-05], "
            f"mom=[(0.9, 0.999)]\nsteps: {number} loss: {shown} iter time (s): 2.512 samples/sec: 25.478"
        )
    else:
        text = f"step {number} loss {shown} lr 3.0e-04 {31000 + stage.rng.randrange(900)} tok/s"
    stage.rank(printer, text, kind="step")


def finish(stage: Stage) -> None:
    """The job ends well."""
    stage.clock += 3
    stage.rank(0, f"training finished after {stage.steps} steps, checkpoint saved to /checkpoints/final", kind="step")
