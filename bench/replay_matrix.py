"""Which recordings replay bit for bit: every mode and every parallelism, really run; prints the table of docs/replay.md.

    python bench/replay_matrix.py [--kinds ddp,fsdp2] [--modes full,ring,light]

One rank is replayed alone (full, ring), or the whole job from a checkpoint (light). "yes": every call compared has
the same bits as recorded, and the rank prints the same hash of its parameters.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
KINDS = "calls,plain,ddp,fsdp1,fsdp2,hsdp,tensor_parallel,fsdp2_and_tensor_parallel,compiled"


def phalanx(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "phalanx", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
    )


def try_one(kind: str, mode: str, ranks: int) -> str:
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        shutil.copyfile(ROOT / "tests" / "replay" / "everything.py", folder / "train.py")
        options = ["--record-steps", "3", "--checkpoint-every", "6"]
        done = phalanx(
            folder, "run", f"--record={mode}", *options, "-n", str(ranks), "--bundle", "bundle", "train.py", kind, "13"
        )
        if done.returncode:
            return f"the job failed: {done.stderr.strip().splitlines()[-1]}"
        whom = ["--all", "--from", "6"] if mode == "light" else ["--rank", str(ranks // 2)]
        again = phalanx(folder, "replay", "bundle", *whom)
        if again.returncode == 2:
            return f"no: {again.stderr.strip().splitlines()[-1]}"
        told = " ".join(again.stdout.split())
        if "[same, bitwise]" not in told:
            return f"no: {told[-300:]}"
        compared = re.search(r"(\d+)(?: of \d+ recorded)? calls compared", told)
        output = (folder / "bundle" / "attempt0" / f"rank{ranks // 2}" / "output.log").read_text()
        printed = [line for line in output.splitlines() if line.startswith(f"{kind}: ")]
        if not printed or any(line not in again.stdout for line in printed):  # ranks print into each other's lines
            return f"no: it printed another hash than {printed}"
        return f"yes ({compared[1] if compared else '?'})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--modes", default="full,ring,light")
    parser.add_argument("--ranks", type=int, default=4, help="hsdp and fsdp2_and_tensor_parallel need four")
    wish = parser.parse_args()
    modes = wish.modes.split(",")
    print("| parallelism | " + " | ".join(modes) + " |\n|---" + "|---" * len(modes) + "|")
    for kind in wish.kinds.split(","):
        print(f"| {kind} | " + " | ".join(try_one(kind, mode, wish.ranks) for mode in modes) + " |", flush=True)


if __name__ == "__main__":
    main()
