"""A failed job of a real Slurm gets its post-mortem beside its output; a good one is left alone; comments where Slurm takes them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import phalanx
from phalanx.schedulers.slurm import comment, parse
from tests.backends.slurm_cluster import SlurmCluster, missing

SOURCE = Path(phalanx.__file__).parent.parent
LINE = (
    "JobId=41 JobName=train me UserId=ada(1000) GroupId=ada(1001) MCS_label=N/A Priority=4294901759 Nice=0 Account=(null) QOS=(null) "
    "JobState=OUT_OF_MEMORY Reason=OutOfMemory Dependency=(null) Requeue=1 ExitCode=0:125 RunTime=00:00:02 TimeLimit=UNLIMITED "
    "NodeList=n[1-2] BatchHost=n1 Command=/home/ada/a b/job.sh WorkDir=/home/ada StdErr=/home/ada/a b.err StdIn=/dev/null "
    "StdOut=/home/ada/a b.out Power="
)


def test_fields_with_blanks() -> None:
    (job,) = parse(LINE + "\nNo jobs in the system\n")
    assert (job.id, job.name, job.state, job.exit, job.user, job.group) == (
        "41",
        "train me",
        "OUT_OF_MEMORY",
        "0:125",
        1000,
        1001,
    )
    assert (job.stdout, job.stderr) == ("/home/ada/a b.out", "/home/ada/a b.err")
    assert job.headline == (
        "Slurm job 41 (train me) ended with OUT_OF_MEMORY (signal 125, OutOfMemory) after 00:00:02 on n[1-2]"
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    if why := missing():
        pytest.skip(why)
    made = SlurmCluster(tmp_path_factory.mktemp("slurm"), nodes=1)
    try:
        yield made
    finally:
        made.close()


def test_a_failed_job_and_a_good_one(cluster: SlurmCluster, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def load(batch):\n    return batch['labels']\n\n\nload({})\n")
    scripts = {"bad": f"#!/bin/sh\nexec {sys.executable} {tmp_path}/bad.py\n", "good": "#!/bin/sh\necho fine\n"}
    for name, text in scripts.items():
        (tmp_path / f"{name}.sh").write_text(text)
        cluster.call("sbatch", "-J", name, "-o", str(tmp_path / f"{name}.out"), str(tmp_path / f"{name}.sh"))
    end = time.monotonic() + 60
    while (
        "JobState=RUNNING" in (shown := cluster.call("scontrol", "show", "job", "-o"))
        or "PENDING" in shown
        or "COMPLETING" in shown
    ):
        assert time.monotonic() < end
        time.sleep(0.2)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **cluster.environment}
    command = [sys.executable, "-m", "phalanx", "slurm", "watch", "--once"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    text = (tmp_path / "bad.out.phalanx.txt").read_text()
    assert "(bad) ended with FAILED (exit status 1)" in text
    assert "raised KeyError: 'labels'" in text
    report = json.loads((tmp_path / "bad.out.phalanx.json").read_text())
    assert report["slurm"]["state"] == "FAILED"
    assert stat.S_IMODE((tmp_path / "bad.out.phalanx.txt").stat().st_mode) == 0o600
    assert not list(tmp_path.glob("good.out.phalanx*"))
    assert (
        "Slurm took no comment" in done.stderr
    )  # the controller refuses one for finished jobs; there is no accounting here
    again = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert (again.returncode, again.stdout) == (0, "")


def test_a_running_job_takes_a_comment(cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "long.sh").write_text("#!/bin/sh\nsleep 60\n")
    told = cluster.call("sbatch", "--parsable", "-o", str(tmp_path / "long.out"), str(tmp_path / "long.sh")).strip()
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    assert comment(told, 'phalanx: Rank 1 raised "x"\nat y')
    assert "Comment=phalanx: Rank 1 raised 'x' at y" in cluster.call("scontrol", "show", "job", "-o", told)
    cluster.call("scancel", told)
