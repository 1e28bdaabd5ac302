"""What `phalanx run` costs beside torchrun: processor time a step, time to the first collective, memory of the launcher.

    python bench/run_vs_torchrun.py --rounds 5 --steps 200 --ranks 2 4

The same DDP job is started in turns by torchrun, by `phalanx run`, and by `phalanx run --no-inside`. Time is counted in
processor seconds of all ranks, with all their threads, and of the launcher, during the same steps: wall time on a machine
that does anything else measures that machine. Each round gives one ratio to torchrun's; the median and the range are printed.
Where the machine's noise is larger than the cost, the cost counted directly tells more: the time that the kernel gave to the
launcher and to the threads of the inside watch during the steps, as a share of the ranks' own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

JOB = """\
import json, os, sys, threading, time
import torch, torch.distributed as dist
began, width, steps, warm = float(os.environ["BENCH_BEGAN"]), *map(int, sys.argv[1:4])
def parent():
    pid = os.getppid()
    status = open(f"/proc/{pid}/status").read()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return sum(spent(f"{pid}/task/{task}") for task in os.listdir(f"/proc/{pid}/task")), peak / 1024
def spent(task):
    return int(open(f"/proc/{task}/schedstat").read().split()[0]) / 1e9
def watching():
    return sum(spent(f"self/task/{one.native_id}") for one in threading.enumerate() if one.name == "phalanx-watch")
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
first = time.time() - began
launch_cpu = time.process_time() + (parent()[0] if dist.get_rank() == 0 else 0.0)
torch.manual_seed(0)
layers = [torch.nn.Linear(width, width) for _ in range(4)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(32, width)
for step in range(warm + steps):
    if step == warm:
        dist.barrier()
        start, wall, above, inside = time.process_time(), time.perf_counter(), parent()[0], watching()
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
mine = time.process_time() - start
elapsed = time.perf_counter() - wall
above, inside = parent()[0] - above, watching() - inside
told = torch.tensor([mine, launch_cpu, inside], dtype=torch.float64)
dist.all_reduce(told)
if dist.get_rank() == 0:
    figures = {"ranks_cpu": told[0].item(), "launcher_cpu": above, "wall": elapsed, "first": first, "launch_cpu": told[1].item(), "inside_cpu": told[2].item(), "launcher_mb": parent()[1]}
    open(os.environ["BENCH_RESULT"], "w").write(json.dumps(figures))
dist.destroy_process_group()
"""
MODELS = {"small": 128, "large": 1024}


def command(launcher: str, ranks: int, folder: Path) -> list[str]:
    """How one launcher starts the job."""
    if launcher == "torchrun":
        return [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    inside = ["--no-inside"] if launcher == "phalanx --no-inside" else []
    bundle = tempfile.mkdtemp(dir=folder)
    return [sys.executable, "-m", "phalanx", "run", "-n", str(ranks), *inside, "--bundle", bundle]


def measure(launcher: str, ranks: int, width: int, steps: int, folder: Path) -> dict[str, float]:
    """One run, in figures."""
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "BENCH_RESULT": str(result), "BENCH_BEGAN": str(time.time())}
    argv = [
        *command(launcher, ranks, folder),
        str(folder / "job.py"),
        str(width),
        str(steps),
        str(max(10, steps // 10)),
    ]
    done = subprocess.run(argv, env=variables, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode != 0 or not result.exists():
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}\n{done.stderr[-3000:]}")
    return dict(json.loads(result.read_text()))


def main() -> None:
    """Measure in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    wishes = parser.parse_args()
    launchers = ["torchrun", "phalanx", "phalanx --no-inside"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job.py").write_text(JOB)
        for ranks in wishes.ranks:
            for model in wishes.models:
                runs: dict[str, list[dict[str, float]]] = defaultdict(list)
                for number in range(wishes.rounds):
                    turn = number % len(launchers)
                    for launcher in launchers[turn:] + launchers[:turn]:
                        runs[launcher].append(measure(launcher, ranks, MODELS[model], wishes.steps, folder))
                print(f"{ranks} ranks, {model} model, {wishes.steps} steps, {wishes.rounds} rounds in turns")
                for launcher in launchers:
                    print(f"  {launcher:20} {describe(runs[launcher], runs['torchrun'], wishes.steps)}", flush=True)


def describe(own: list[dict[str, float]], base: list[dict[str, float]], steps: int) -> str:
    """One launcher's medians, and what they are beside torchrun's of the same round."""

    def middle(key: str) -> float:
        return statistics.median(run[key] for run in own)

    def direct(run: dict[str, float]) -> float:
        return 100 * (run["launcher_cpu"] + run["inside_cpu"]) / (run["ranks_cpu"] - run["inside_cpu"])

    cpu = [run["ranks_cpu"] + run["launcher_cpu"] for run in own]
    ratios = [100 * (a / (b["ranks_cpu"] + b["launcher_cpu"]) - 1) for a, b in zip(cpu, base, strict=True)]
    return (
        f"{1000 * statistics.median(cpu) / steps:8.3f} cpu-ms a step ({statistics.median(ratios):+.2f} %, "
        f"{min(ratios):+.1f} to {max(ratios):+.1f}), counted directly {statistics.median(map(direct, own)):.2f} %: launcher "
        f"{1000 * middle('launcher_cpu') / steps:.3f} ms, inside {1000 * middle('inside_cpu') / steps:.3f} ms (in {middle('wall'):.1f} s: "
        f"{1000 * middle('launcher_cpu') / middle('wall'):.1f} and {1000 * middle('inside_cpu') / middle('wall'):.1f} ms a second); "
        f"first collective {middle('first'):.1f} s, {middle('launch_cpu'):.1f} cpu-s; launcher {middle('launcher_mb'):.0f} MB"
    )


if __name__ == "__main__":
    main()
