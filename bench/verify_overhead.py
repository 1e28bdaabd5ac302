"""What verifying costs: `phalanx verify` against the plain run of a small job, and `phalanx run --verify=sample` by the step.

    python bench/verify_overhead.py [ROUNDS]

Runs the same script plainly, sampled and verified in turns. Wall time of the whole command, and processor time of a step (of the
ranks, without their start), medians.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = """
import time, torch, torch.nn as nn, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
WIDTH, BATCH, STEPS = {width}, {batch}, {steps}
dist.init_process_group("gloo")
torch.manual_seed(0)
layers = [part for _ in range(6) for part in (nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU())]
model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(WIDTH, 8)))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
data = TensorDataset(torch.randn(BATCH * 2 * STEPS, WIDTH), torch.randint(0, 8, (BATCH * 2 * STEPS,)))
loader = DataLoader(data, batch_size=BATCH, sampler=DistributedSampler(data))
for step, (x, y) in enumerate(loader):
    if step == 20:
        began = time.process_time()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print(f"step {{1000 * (time.process_time() - began) / (STEPS - 20):.4f}} ms")
dist.destroy_process_group()
"""
SIZES = {"small: 0.4 M parameters": (256, 64, 300), "large: 6.3 M parameters": (1024, 128, 60)}
WAYS = {
    "plain": ["run", "--format", "json"],
    "sampled": ["run", "--verify=sample", "--format", "json"],
    "verified": ["verify", "--steps", "100000", "--format", "json"],  # to its own end, however slow the machine is
}


def once(way: str, folder: Path) -> tuple[float, float]:
    """Seconds of the whole command, and milliseconds of processor time of a step."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", WAYS[way][0], "-n", "2", *WAYS[way][1:], "train.py"],
        cwd=folder, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    steps = [float(one) for one in re.findall(r"step ([\d.]+) ms", done.stderr)]
    if done.returncode or not steps:
        raise SystemExit(f"{way}: status {done.returncode}\n{done.stderr[-2000:]}")
    return time.monotonic() - began, statistics.mean(steps)


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name, (width, batch, steps) in SIZES.items():
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "train.py").write_text(SCRIPT.format(width=width, batch=batch, steps=steps))
            found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
            for _ in range(rounds):
                for way in WAYS:
                    found[way].append(once(way, folder))
        for way, values in found.items():
            wall = statistics.median(one for one, _ in values)
            step = statistics.median(one for _, one in values)
            ratios = sorted(mine[1] / plain[1] - 1 for mine, plain in zip(values, found["plain"], strict=True))
            shown = f"{statistics.median(ratios):+.1%} ({ratios[0]:+.1%} to {ratios[-1]:+.1%})"
            print(f"{name}, {way}: {wall:.1f} s in all, {step:.2f} ms of processor time a step, {shown}")


if __name__ == "__main__":
    main()
