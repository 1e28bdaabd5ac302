"""What recording costs: processor time of a step with the recorder on against off, in turns within one process.

    python bench/record_overhead.py                 # DDP and FSDP2, 2 and 4 ranks, small and large
    python bench/record_overhead.py --ranks 2 --kinds ddp --sizes small --modes light

Both kinds of blocks run in the same process, one after the other, so that the machine's other work falls on both. What is
counted is processor time of the whole process, in which the recorder's threads and Gloo's are contained. The figure is
the median over pairs of neighbouring blocks. Bytes are those written to disk in a step by one rank; those that the ring
holds, at most, stand beside.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES = {"small": (256, 4, 256), "large": (1024, 4, 256)}  # width, depth, batch


def measure(kind: str, ranks: int, size: str, mode: str, blocks: int, steps: int) -> dict[str, Any]:
    """One job. Returns medians over its ranks and pairs."""
    with tempfile.TemporaryDirectory() as work:
        shape = [str(number) for number in SIZES[size]]
        command = [sys.executable, "-m", "phalanx", "run", f"--record={mode}", "--checkpoint-every", "0"]
        command += ["-n", str(ranks), "--bundle", f"{work}/bundle", str(HERE / "record_job.py"), kind, *shape]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command += [str(blocks), str(steps), work]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        ranked = [json.loads(path.read_text()) for path in Path(work).glob("[0-9]*.json")]
    ratios, off, on, disk, log = [], [], [], [], []
    for rank in ranked:
        for before, after in zip(rank["blocks"][::2], rank["blocks"][1::2], strict=True):
            ratios.append(after[1] / before[1] - 1)
            off.append(before[1])
            on.append(after[1])
            disk.append(after[3])
            log.append(after[4])
    quartiles = statistics.quantiles(ratios, n=4)
    return {
        "parameters": ranked[0]["parameters"],
        "cost": statistics.median(ratios),
        "quartiles": (quartiles[0], quartiles[2]),
        "off": statistics.median(off),
        "disk": statistics.median(disk),
        "log": statistics.median(log),
        "ring": max(rank["ring"] for rank in ranked),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--kinds", default="ddp,fsdp2")
    parser.add_argument("--sizes", default="small,large")
    parser.add_argument("--modes", default="light,ring,full")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=12)
    wish = parser.parse_args()
    print(
        "| job | mode | cost of a step (quartiles) | step without, processor ms | disk a step and rank | of it log | ring holds at most |"
    )
    print("|---|---|---:|---:|---:|---:|---:|")
    for kind in wish.kinds.split(","):
        for ranks in map(int, wish.ranks.split(",")):
            for size in wish.sizes.split(","):
                for mode in wish.modes.split(","):
                    found = measure(kind, ranks, size, mode, wish.blocks, wish.steps)
                    job = f"{kind}, {ranks} ranks, {found['parameters'] / 1e6:.1f} M parameters a rank"
                    low, high = found["quartiles"]
                    print(
                        f"| {job} | {mode} | {found['cost']:+.1%} ({low:+.1%} to {high:+.1%}) | {found['off'] * 1e3:.1f} | "
                        f"{(found['disk'] + found['log']) / 1e6:.3f} MB | {found['log'] / 1e3:.1f} kB | {found['ring'] / 1e6:.1f} MB |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
