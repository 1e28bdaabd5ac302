"""The analysis of scripts beside ruff and pylint on the same tree: processor time and wall time.

    python bench/lint_speed.py TREE [--pylint PATH] [--lines N]

The tree is copied file by file until it has N lines, so that all three read the same. Processor time is that of the
process and its children; it is what can be compared on a machine that has other work.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def take(tree: Path, target: Path, wanted: int) -> int:
    """Copy files of a tree until there are so many lines."""
    lines = 0
    for path in sorted(tree.rglob("*.py")):
        if lines >= wanted:
            break
        text = path.read_bytes()
        place = target / path.relative_to(tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text)
        lines += text.count(b"\n")
    return lines


def measure(command: list[str], folder: Path) -> tuple[float, float]:
    """Processor and wall seconds of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--pylint", default=shutil.which("pylint"))
    parser.add_argument("--lines", type=int, default=100_000)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "tree"
        lines = take(wanted.tree, folder, wanted.lines)
        script = Path(made) / "train.py"
        script.write_text(
            "import torch\nimport torch.distributed as dist\n\ndist.init_process_group('gloo')\n"
            + "x = torch.zeros(1)\n" * 200
        )
        phalanx = [sys.executable, "-m", "phalanx", "check"]
        rows = [
            ("phalanx check", [*phalanx, "tree"]),
            ("ruff check", [sys.executable, "-m", "ruff", "check", "--no-cache", "tree"]),
        ]
        if wanted.pylint:
            rows.append(("pylint", [wanted.pylint, "--recursive=y", f"--jobs={1}", "tree"]))
        print(f"{lines:,} lines, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        for name, command in rows:
            busy, wall = measure(command, Path(made))
            print(f"{name:<16} {busy:8.2f} s of processor time, {wall:8.2f} s")
        times = [measure([*phalanx, "train.py"], Path(made)) for _ in range(5)]
        print(
            f"{'a single script':<16} {min(t[0] for t in times):8.2f} s of processor time, {min(t[1] for t in times):8.2f} s (best of 5)"
        )


if __name__ == "__main__":
    main()
