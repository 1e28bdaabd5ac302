"""How fast a rank replays alone, against the recorded run and against the same run without a recorder.

    python bench/replay_speed.py [--kinds ddp,fsdp2] [--ranks 2,4] [--steps 40] [--rounds 3]

A step's wall and processor time, as the script itself measures it: medians of all steps but the first five, of rank 1. The
runs take turns.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

JOB = """\
import sys, time
import torch, torch.distributed as dist
from torch import nn

kind, width, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
made = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())], nn.Linear(width, 1))
if kind == "ddp":
    net = nn.parallel.DistributedDataParallel(made)
else:
    from torch.distributed.fsdp import fully_shard
    for layer in made:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    net = fully_shard(made)
optimizer = torch.optim.Adam(net.parameters())
inputs = torch.randn(256, width)
for _ in range(steps):
    wall, cpu = time.perf_counter(), time.process_time()
    optimizer.zero_grad()
    net(inputs).square().mean().backward()
    optimizer.step()
    print(f"took {(time.perf_counter() - wall) * 1e3:.4f} {(time.process_time() - cpu) * 1e3:.4f}", flush=True)
dist.destroy_process_group()
"""


def phalanx(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def times_in(text: str) -> list[tuple[float, float]]:
    found = re.findall(r"took ([\d.]+) ([\d.]+)", text)
    return [(float(wall), float(cpu)) for wall, cpu in found][5:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="ddp,fsdp2")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--width", default="1024")
    parser.add_argument("--steps", default="25")
    parser.add_argument("--rounds", type=int, default=2)
    wish = parser.parse_args()
    print(
        "| job | without a recorder: wall, processor ms | recorded (full) | replayed alone | replayed ÷ recorded, wall |"
    )
    print("|---|---:|---:|---:|---:|")
    for kind in wish.kinds.split(","):
        for ranks in wish.ranks.split(","):
            found: dict[str, list[tuple[float, float]]] = {"plain": [], "recorded": [], "replayed": []}
            for _ in range(wish.rounds):
                with tempfile.TemporaryDirectory() as work:
                    folder = Path(work)
                    (folder / "train.py").write_text(JOB)
                    script = ["train.py", kind, wish.width, wish.steps]
                    for name, options in (("plain", []), ("recorded", ["--record=full", "--checkpoint-every", "0"])):
                        phalanx(folder, "run", *options, "-n", ranks, "--bundle", name, *script)
                        found[name] += times_in((folder / name / "attempt0" / "rank1" / "output.log").read_text())
                    found["replayed"] += times_in(phalanx(folder, "replay", "recorded", "--rank", "1"))
                    shutil.rmtree(folder / "recorded")
            medians = {
                name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in found.items()
            }
            cells = " | ".join(f"{wall:.1f}, {cpu:.1f}" for wall, cpu in medians.values())
            print(
                f"| {kind}, {ranks} ranks | {cells} | {medians['replayed'][0] / medians['recorded'][0]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
