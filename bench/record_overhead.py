"""What recording costs: a step with the recorder against one without, in turns within the same processes.

    python bench/record_overhead.py                 # DDP and FSDP2, 2 and 4 ranks, small and large, light and ring
    python bench/record_overhead.py --ranks 2 --kinds ddp --sizes small --modes light

Every job runs rounds of blocks of steps: without a recorder, not even its kernels are there, and with it in each mode. The
order turns from round to round, so that the machine's other work falls on all. A round gives one ratio, of processor time
of all ranks and threads or of wall time, against the block without of the same round; printed are medians over rounds and
95 % intervals (bootstrap). Beside them stand the bytes that a rank writes to its log and keeps of results in a step, and what
the ring's memory came to, each against what the 1/N arithmetic says.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES = {"small": (256, 4, 256, 40), "large": (1024, 4, 256, 8)}  # width, depth, batch, steps in a block
KEEP = 4  # steps between two snapshots of a ring


def measure(kind: str, ranks: int, size: str, modes: str, rounds: int) -> list[dict[str, Any]]:
    """One job; what each of its ranks found."""
    width, depth, batch, steps = SIZES[size]
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, "-m", "phalanx", "run", "--record=light", "--checkpoint-every", "0"]
        command += ["--record-steps", str(KEEP), "-n", str(ranks), "--bundle", f"{work}/bundle"]
        command += [str(HERE / "record_job.py"), kind, *map(str, (width, depth, batch, rounds, steps)), modes, work]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        return [json.loads(path.read_text()) for path in sorted(Path(work).glob("[0-9]*.json"))]


def ratios(found: list[dict[str, Any]], mode: str, unit: str) -> list[float]:
    """One for each round: the sum over ranks of this mode against that without."""
    totals: dict[tuple[int, str], float] = {}
    for rank in found:
        for row in rank["rows"]:
            totals[row["round"], row["mode"]] = totals.get((row["round"], row["mode"]), 0.0) + row[unit]
    return [value / totals[number, "off"] - 1 for (number, name), value in totals.items() if name == mode]


def interval(values: list[float]) -> str:
    """The median and how far it can be trusted."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(2000))
    return f"{statistics.median(values):+.1%} ({medians[50]:+.1%} to {medians[1949]:+.1%})"


def predicted(kind: str, parameters: int, ranks: int) -> tuple[float, float]:
    """Bytes of results that a rank keeps of a step, and bytes that its ring comes to.

    DDP reduces all gradients once and each rank keeps its part. FSDP2 gathers the parameters twice and each rank keeps its
    part; of the scattered gradients it has its part anyway. A ring has two stretches, each a state (parameters and Adam's
    two moments; with FSDP2 the rank's shard) and the results of its steps.
    """
    whole = 4.0 * parameters
    kept = whole / ranks * (1 if kind == "ddp" else 3)
    state = 3 * whole / (1 if kind == "ddp" else ranks)
    return kept, 2 * (state + KEEP * kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--kinds", default="ddp,fsdp2")
    parser.add_argument("--sizes", default="small,large")
    parser.add_argument("--modes", default="light,ring")
    parser.add_argument("--rounds", type=int, default=12)
    wish = parser.parse_args()
    print(
        "| job | mode | processor time of a step | wall time of a step | step without: processor ms, wall ms "
        "| log a step and rank | results kept a step and rank (1/N says) | ring holds (1/N says) |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for kind in wish.kinds.split(","):
        for ranks in map(int, wish.ranks.split(",")):
            for size in wish.sizes.split(","):
                found = measure(kind, ranks, size, wish.modes, wish.rounds)
                for mode in wish.modes.split(","):
                    print_row(kind, ranks, mode, found)


def print_row(kind: str, ranks: int, mode: str, found: list[dict[str, Any]]) -> None:
    rows = [row for rank in found for row in rank["rows"]]
    off = [statistics.median(row[unit] for row in rows if row["mode"] == "off") * 1e3 for unit in ("cpu", "wall")]
    log = statistics.median(row["log"] for row in rows if row["mode"] == mode)
    kept = statistics.mean(row["kept"] for row in rows if row["mode"] == mode)
    parameters = found[0]["parameters"]
    says, holds = predicted(kind, parameters, ranks)
    results = f"{kept / 1e6:.2f} MB ({says / 1e6:.2f})" if mode != "light" else "–"
    ring = f"{max(rank['ring'] for rank in found) / 1e6:.1f} MB ({holds / 1e6:.1f})" if mode == "ring" else "–"
    print(
        f"| {kind}, {ranks} ranks, {parameters / 1e6:.1f} M parameters | {mode} | {interval(ratios(found, mode, 'cpu'))} "
        f"| {interval(ratios(found, mode, 'wall'))} | {off[0]:.1f}, {off[1]:.1f} | {log / 1e3:.1f} kB | {results} | {ring} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
