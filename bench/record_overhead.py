"""What recording costs: a step with the recorder against one without, in turns within the same processes.

    python bench/record_overhead.py                 # 2 and 4 ranks, DDP and FSDP2, small, large and tiny, light and ring: 12 minutes
    python bench/record_overhead.py --ranks 2 --kinds ddp --sizes small --modes light --seconds 90
    PHALANX_NO_CACHE=1 python bench/record_overhead.py        # without the compiled kernel

The sizes (`record_models.py`):
- `small`: a GPT over bytes, 4 layers of width 192, 8 texts of 64 bytes: what one trains on a processor.
- `large`: a perceptron of four layers of width 1024, 256 samples: the most bytes for the least computing.
- `tiny`: the same of width 256, as in a tutorial: steps of some ten milliseconds, in which every call counts.
FSDP2 shards each layer and what is left, as its documentation does.

Every job runs rounds of blocks of steps: without a recorder, not even its kernels are there, and with it in each mode. The
order turns from round to round, so that the machine's other work falls on all. A round gives one ratio, of processor time
of all ranks and threads or of wall time, against the block without of the same round; printed are medians over rounds and
95 % intervals (bootstrap). Beside them stand calls and bytes: those that light reads for fingerprints (of a batch not), that a rank writes to
its log and keeps of results in a step, and what the ring's memory came to, the last two against what the 1/N arithmetic says.
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
NAMES = {"ddp": "DDP", "fsdp2": "FSDP2"}
KEEP = 4  # steps between two snapshots of a ring


def measure(kind: str, ranks: int, size: str, modes: str, seconds: float) -> list[dict[str, Any]]:
    """One job; what each of its ranks found."""
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, "-m", "phalanx", "run", "--record=light", "--checkpoint-every", "0"]
        command += ["--record-steps", str(KEEP), "-n", str(ranks), "--bundle", f"{work}/bundle"]
        command += [str(HERE / "record_job.py"), kind, size, str(seconds), str(KEEP), modes, work]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600, check=False)
        if done.returncode:
            raise SystemExit(done.stdout[-2000:] + done.stderr)
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
    middle, low, high = (
        f"{value:+.1%}".replace("-", "−").replace("%", " %")
        for value in (statistics.median(values), medians[50], medians[1949])
    )
    return f"{middle} ({low.removesuffix(' %')} to {high.removesuffix(' %')})"


def predicted(kind: str, parameters: int, of_layers: int, ranks: int) -> tuple[float, float]:
    """Bytes of results that a rank keeps of a step, and bytes that its ring comes to.

    DDP reduces all gradients once and each rank keeps its part. FSDP2 gathers the parameters of layers
    twice, those beside them once, and each rank keeps its part; of the scattered gradients it has its part anyway. A ring has two stretches, each a state (parameters and Adam's
    two moments; with FSDP2 the rank's shard) and the results of its steps.
    """
    whole = 4.0 * parameters
    kept = whole / ranks if kind == "ddp" else (2 * whole + 4.0 * of_layers) / ranks
    state = 3 * whole / (1 if kind == "ddp" else ranks)
    return kept, 2 * (state + KEEP * kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--kinds", default="ddp,fsdp2")
    parser.add_argument("--sizes", default="small,large,tiny")
    parser.add_argument("--modes", default="light,ring")
    parser.add_argument("--seconds", type=float, default=40, help="of measuring in each job, beside its start")
    wish = parser.parse_args()
    # The recorder's compiled kernel, which jobs do not wait for: what is measured is what they have from the second on.
    subprocess.run([sys.executable, "-m", "phalanx.replay.kernel"], stdout=sys.stderr, check=False)
    print(
        "| job | mode | processor time of a step | wall time of a step | step without: processor, wall ms "
        "| calls, MB read a step | log a step and rank | kept a step and rank (1/N says) | ring holds (1/N says) |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for ranks in map(int, wish.ranks.split(",")):
        for kind in wish.kinds.split(","):
            for size in wish.sizes.split(","):
                found = measure(kind, ranks, size, wish.modes, wish.seconds)
                for mode in wish.modes.split(","):
                    print_row(kind, ranks, size, mode, found)


def print_row(kind: str, ranks: int, size: str, mode: str, found: list[dict[str, Any]]) -> None:
    rows = [row for rank in found for row in rank["rows"]]
    off = [statistics.median(row[unit] for row in rows if row["mode"] == "off") * 1e3 for unit in ("cpu", "wall")]
    log, calls = (statistics.median(row[unit] for row in rows if row["mode"] == mode) for unit in ("log", "calls"))
    kept = statistics.mean(row["kept"] for row in rows if row["mode"] == mode)
    parameters, read = found[0]["parameters"], statistics.mean(rank["read"] for rank in found)
    says, holds = predicted(kind, parameters, found[0]["of_layers"], ranks)
    results = f"{kept / 1e6:.2f} MB ({says / 1e6:.2f})" if mode != "light" else "–"
    ring = f"{max(rank['ring'] for rank in found) / 1e6:.1f} MB ({holds / 1e6:.1f})" if mode == "ring" else "–"
    print(
        f"| {NAMES[kind]}, {ranks} ranks, {size}: {parameters / 1e6:.1f} M parameters | {mode} "
        f"| {interval(ratios(found, mode, 'cpu'))} | {interval(ratios(found, mode, 'wall'))} | {off[0]:.1f}, {off[1]:.1f} "
        f"| {calls:.0f}, {read / 1e6:.1f} | {log / 1e3:.1f} kB | {results} | {ring} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
