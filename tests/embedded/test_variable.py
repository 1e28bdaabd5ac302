"""`PHALANX=1` in front of the launchers that people use: the verdict of `phalanx run`, said by nobody's help, and the job as ever."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from phalanx import diagnose
from phalanx.model import bundle as layout
from tests.embedded.jobs import TRAIN, bundles, run_job, torchrun
from tests.needs import needs_torch

pytestmark = [needs_torch, pytest.mark.job]


@pytest.fixture(autouse=True)
def _script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)


def test_a_death_under_torchrun(tmp_path: Path) -> None:
    done = run_job(tmp_path, torchrun(2, "train.py", "raise"))
    assert done.returncode == 1
    assert "✗ Rank 1 raised ValueError: bad batch at step 30 in main (train.py:14)." in done.stderr
    (bundle,) = bundles(tmp_path)
    assert f"more: phalanx diagnose {bundle}" in done.stderr
    report = json.loads((bundle / layout.REPORT).read_text())
    assert report["verdict"]["culprit_ranks"] == [1]
    exits = [json.loads((bundle / f"attempt0/rank{rank}/exit.json").read_text()) for rank in (0, 1)]
    assert exits[1]["code"] == 1
    assert exits[0]["by"] is None or exits[0]["by"].startswith("rank 1 ended")
    manifest = json.loads((bundle / layout.MANIFEST).read_text())
    assert (manifest["state"], manifest["size"], manifest["status"]) == ("ended", 2, 1)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [bundle, *bundle.rglob("*")]}
    assert modes <= {0o700, 0o600}


def test_a_killed_rank_is_named_with_its_signal(tmp_path: Path) -> None:
    done = run_job(tmp_path, torchrun(2, "train.py", "kill"))
    assert "SIGKILL" in done.stderr.partition("✗")[2]
    (bundle,) = bundles(tmp_path)
    assert json.loads((bundle / layout.REPORT).read_text())["verdict"]["culprit_ranks"] == [1]


def test_a_job_that_ends_well_is_as_ever(tmp_path: Path) -> None:
    plain = run_job(tmp_path, torchrun(2, "train.py", "none"), {"PHALANX": "0"})
    assert not bundles(tmp_path)
    done = run_job(tmp_path, torchrun(2, "train.py", "none"))
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (0, "")
    assert "phalanx" not in done.stderr
    (bundle,) = bundles(tmp_path)
    assert json.loads((bundle / layout.MANIFEST).read_text())["status"] == 0
    assert {path.name for path in (bundle / "attempt0").glob("rank*")} == {"rank0", "rank1"}


def test_a_stall_of_spawned_ranks_is_told_and_nobody_is_ended(tmp_path: Path) -> None:
    """Ranks of `mp.spawn` have no variables; the parent that spawns them is none."""
    (tmp_path / "spawns.py").write_text(
        "import os, sys, time\n"
        "import torch, torch.distributed as dist, torch.multiprocessing as mp\n\n\n"
        "def go(index):\n"
        "    dist.init_process_group('gloo', init_method=f'file://{os.getcwd()}/store', rank=index, world_size=3)\n"
        "    for step in range(10000):\n"
        "        if step == 60 and index == 2:\n"
        "            open(f'late-{os.getpid()}', 'w').close()\n"
        "            while not os.path.exists('go-on'):\n"
        "                time.sleep(0.2)\n"
        "        if step == 90:\n"
        "            return\n"
        "        dist.all_reduce(torch.ones(3))\n"
        "        time.sleep(0.02)\n\n\n"
        "if __name__ == '__main__':\n"
        "    mp.spawn(go, nprocs=3)\n"
    )
    watcher = (
        "import os, subprocess, sys, time\n"
        "job = subprocess.Popen([sys.executable, 'spawns.py'])\n"
        "end = time.monotonic() + 60\n"
        "import glob\n"
        "while time.monotonic() < end and not glob.glob('phalanx-runs/*/report.json'):\n"
        "    time.sleep(0.2)\n"
        "open('go-on', 'w').close()\n"
        "sys.exit(job.wait())\n"
    )
    variables = {"PHALANX_STALL_AFTER": "3"}
    done = run_job(tmp_path, [sys.executable, "-c", watcher], variables)
    assert done.returncode == 0, done.stderr
    assert "ranks 0, 1 wait in all_reduce at spawns.py" in done.stderr
    assert "Rank 2 sleeps in go() at spawns.py" in done.stderr
    (bundle,) = bundles(tmp_path)
    assert bundle.name.endswith("-spawns")
    manifest = json.loads((bundle / layout.MANIFEST).read_text())
    assert manifest["status"] == 0
    late = int(next(tmp_path.glob("late-*")).name.partition("-")[2])
    assert json.loads((bundle / "attempt0/rank2/process.json").read_text())["pid"] == late


def test_a_job_that_is_killed_while_it_hangs_keeps_the_verdict_on_the_hang(tmp_path: Path) -> None:
    """Whoever ends a hung job is no culprit, and neither is the rank that was killed first."""
    killer = (
        "import glob, json, os, subprocess, sys, time\n"
        f"job = subprocess.Popen({torchrun(2, 'train.py', 'hang')!r})\n"
        "end = time.monotonic() + 80\n"
        "while time.monotonic() < end and not glob.glob('phalanx-runs/*/report.json'):\n"
        "    time.sleep(0.2)\n"
        "for rank in (0, 1):\n"
        "    (told,) = glob.glob(f'phalanx-runs/*/attempt0/rank{rank}/process.json')\n"
        "    os.kill(json.load(open(told))['pid'], 9)\n"
        "job.wait()\n"
    )
    done = run_job(tmp_path, [sys.executable, "-c", killer], timeout=150)
    assert "✗ Rank 1 sleeps in main() at train.py:18" in done.stderr
    assert "SIGKILL" not in done.stderr.partition("✗")[2].partition("torch/distributed")[0]
    (bundle,) = bundles(tmp_path)
    report = json.loads((bundle / layout.REPORT).read_text())
    assert report["verdict"]["culprit_ranks"] == [1]
    exits = [json.loads((bundle / f"attempt0/rank{rank}/exit.json").read_text()) for rank in (0, 1)]
    assert {one["by"] for one in exits} == {"somebody ended the job while it hung"}
    again = diagnose(str(bundle)).verdict
    assert again is not None
    assert (again.culprit_ranks, again.symptom) == ((1,), "perf.hang")


def two_nodes(folder: Path, fault: str, variables: Mapping[str, str], folders: tuple[str, str]) -> None:
    """Two agents with host names of their own, each with a folder for bundles; the job is killed when a verdict is there."""
    (folder / "train.py").write_text(TRAIN.replace("sleep(0.02)", "sleep(0.1)"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    agents = "\n".join(
        f'PHALANX_DIR={folders[node]} unshare -u sh -c \'hostname node{node}; exec "$0" "$@"\' {sys.executable} -m torch.distributed.run '
        f"--nnodes 2 --node-rank {node} --nproc-per-node 1 --master-addr 127.0.0.1 --master-port {port} train.py {fault} 2> node{node}.err &\n"
        f"A{node}=$!"
        for node in (0, 1)
    )
    waits = (
        f"for i in $(seq 300); do [ -e {folders[0]}/*/report.json ] && break; sleep 0.2; done; sleep 2; kill $A0 $A1"
    )
    run_job(folder, ["sh", "-c", f"{agents}\n{waits if fault == 'hang' else ''}\nwait"], variables, timeout=150)


def report_below(folder: Path, seconds: float = 40) -> dict[str, Any]:
    (bundle,) = folder.glob("*-train")
    end = time.monotonic() + seconds
    while not (bundle / layout.REPORT).exists() and time.monotonic() < end:
        time.sleep(0.2)
    return dict(json.loads((bundle / layout.REPORT).read_text()))


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to name hosts")


@needs_root
def test_two_nodes_meet_in_a_shared_folder(tmp_path: Path) -> None:
    """Each has a companion, the one of rank 0 speaks."""
    shared = tmp_path / "shared"
    two_nodes(tmp_path, "raise", {}, (str(shared), str(shared)))
    assert report_below(shared)["verdict"]["culprit_ranks"] == [1]
    (bundle,) = shared.glob("*-train")
    assert {path.stem for path in (bundle / "nodes").glob("*.json")} == {"node0", "node1"}
    assert not list((bundle / "nodes").glob("*.calls"))
    said = [(tmp_path / f"node{node}.err").read_text().count("✗ Rank 1 raised ValueError") for node in (0, 1)]
    assert sum(said) == 1


@needs_root
@pytest.mark.parametrize("fault", ["raise", "hang"])
def test_two_nodes_without_a_shared_folder_meet_by_the_store(tmp_path: Path, fault: str) -> None:
    """The verdict is made beside rank 0 over the evidence of both, and comes back to the other node."""
    folders = (str(tmp_path / "here"), str(tmp_path / "there"))
    two_nodes(tmp_path, fault, {}, folders)
    for folder in folders:
        report = report_below(Path(folder))
        assert report["verdict"]["culprit_ranks"] == [1], report["verdict"]
    at_rank_1 = {
        "raise": "raised ValueError: bad batch",
        "hang": "never joined all_reduce #31 of group default_pg, it is at train.py:18",
    }
    said = f"✗ Rank 1 {at_rank_1[fault]}"
    assert (tmp_path / "node0.err").read_text().count(said) == 1
    assert said not in (tmp_path / "node1.err").read_text()
    (bundle,) = Path(folders[0]).glob("*-train")
    assert (bundle / "attempt0/rank1/process.json").exists()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [bundle, *bundle.rglob("*")]}
    assert modes <= {0o700, 0o600}


@needs_root
def test_two_nodes_meet_at_an_address(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folders = (str(tmp_path / "here"), str(tmp_path / "there"))
    two_nodes(tmp_path, "raise", {"PHALANX_MEET": f"127.0.0.1:{port}", "PHALANX_MEET_TOKEN": "of this job"}, folders)
    assert [report_below(Path(folder))["verdict"]["culprit_ranks"] for folder in folders] == [[1], [1]]
