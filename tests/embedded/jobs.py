"""Starts jobs as people do, with the variable set, in an environment whose `.pth` file is that of the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import phalanx

SOURCE = Path(phalanx.__file__).parent.parent
TRAIN = """\
import os, sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
fault = sys.argv[1]


def main():
    for step in range(200):
        if step == 30 and rank == 1:
            if fault == "raise":
                raise ValueError(f"bad batch at step {step}")
            if fault == "kill":
                os.kill(os.getpid(), 9)
            if fault == "hang":
                time.sleep(600)
        if step == 40 and fault == "none":
            break
        dist.all_reduce(torch.ones(4))
        time.sleep(0.02)


main()
dist.destroy_process_group()
"""


def prepared(folder: Path, *also: Path) -> dict[str, str]:
    """Variables under which every interpreter reads the package's `.pth`, whatever environment it belongs to."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    shutil.copy(SOURCE / "phalanx_gate.pth", site)
    (site / "sitecustomize.py").write_text(
        f"import site, sys\nsys.path.append({str(SOURCE)!r})\nsite.addsitedir({str(site)!r})\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PHALANX", "RANK", "SLURM"))}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(site), *map(str, also)]), "OMP_NUM_THREADS": "1", "PHALANX": "1"}


def run_job(
    folder: Path, command: Sequence[str], variables: Mapping[str, str] | None = None, timeout: float = 90
) -> subprocess.CompletedProcess[str]:
    """Run to the end; both streams end when the companion has said what it has to say."""
    environment = {**prepared(folder), **(variables or {})}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )


def torchrun(ranks: int, *arguments: str) -> list[str]:
    """The command line that people use, by this interpreter."""
    options = ["--nproc-per-node", str(ranks), "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]
    return [sys.executable, "-m", "torch.distributed.run", *options, *arguments]


def bundles(folder: Path) -> list[Path]:
    """What the jobs left."""
    return sorted(path for path in (folder / "phalanx-runs").glob("*") if not path.name.startswith("."))
