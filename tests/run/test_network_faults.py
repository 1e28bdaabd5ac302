"""A job whose network breaks while it trains, under `phalanx run`, in a network of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .jobs import SOURCE, finish, said, wait_for
from .watch.test_network import bed

__all__ = ["bed"]
pytestmark = [
    pytest.mark.job,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]
TRAIN = """\
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(10**6):
    dist.all_reduce(torch.ones(4096))
    time.sleep(0.05)
    if step % 20 == 0:
        print(f"step {step}", flush=True)
"""
DROP = "table inet t {\n chain c {\n type filter hook input priority 0;\n meta l4proto tcp drop\n }\n}\n"


def test_a_partition_in_the_middle_of_training_accuses_nobody(bed: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    command = [*bed, sys.executable, "-m", "phalanx", "run", "-n", "2", "--bundle", str(tmp_path / "bundle")]
    command += ["--on-stall", "abort", "--timeout", "300", "train.py"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=(tmp_path / "out").open("wb"),
        stderr=(tmp_path / "err").open("wb"),
        env={**os.environ, "PYTHONPATH": str(SOURCE), "GLOO_SOCKET_IFNAME": "lo"},
    )
    assert wait_for(lambda: said((tmp_path / "out").read_text()).get("step 40") == [0, 1], 200)
    subprocess.run([*bed, "nft", "-f", "-"], input=DROP, text=True, check=True, timeout=20)
    done = finish(process, tmp_path, 300)
    assert done.status == 1, done.err
    assert "are not acknowledged" in done.err
    verdict = done.report()["verdict"]
    assert (verdict["cause"], verdict["culprit_ranks"]) == ("network-path-broken", []), done.err
