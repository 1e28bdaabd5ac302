"""The check in place of the script under real launchers: Slurm of three nodes, Open MPI, a Ray cluster of two nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.backends.slurm_cluster import Slurm
from tests.calls import clusters
from tests.calls.sharing import shared

SOURCE = str(Path(__file__).parents[2] / "src")
CHECK = [sys.executable, "-m", "phalanx", "check", "--format", "json", "--wait", "90"]
pytestmark = pytest.mark.timeout(300)


def run(command: list[str], folder: Path, more: Mapping[str, str] | None = None, text: str | None = None) -> str:
    """What it prints; it must have ended well, or with findings."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "TORCHELASTIC"))
    }
    variables = {**kept, "PYTHONPATH": SOURCE, **(more or {})}
    done = subprocess.run(
        command, cwd=folder, env=variables, input=text, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def report_of(printed: str) -> dict[str, Any]:
    """The one report among what all ranks printed."""
    assert printed.count('"schema": "phalanx.report/1"') == 1, printed
    report: dict[str, Any] = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])
    return report


def causes(report: Mapping[str, Any]) -> list[str]:
    return [finding["cause"] for finding in report["findings"]]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    clusters.needs_slurm()
    with shared("slurm", tmp_path_factory) as (folder, _):
        yield Slurm(folder)


@pytest.mark.parametrize("arguments", [[], ["--meet", "meeting"]])
def test_srun_in_place_of_the_script(slurm: Slurm, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "meeting").mkdir()
    report = report_of(run(["srun", "-N", "3", "-n", "3", *CHECK, *arguments], tmp_path, slurm.environment))
    assert causes(report) == []
    assert [rank["rank"] for rank in report["world"]["ranks"]] == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["meeting"]  # nothing is left behind
    assert list((tmp_path / "meeting").iterdir()) == []


def test_srun_finds_what_was_exported_to_all_ranks_alike(slurm: Slurm, tmp_path: Path) -> None:
    wrong = {"RANK": "0", "WORLD_SIZE": "3", "NCCL_IB_DISABLE": "true", **slurm.environment}
    report = report_of(run(["srun", "-N", "3", "-n", "3", *CHECK], tmp_path, wrong))
    assert set(causes(report)) >= {"launcher-and-environment-disagree", "value-misparsed"}


def mpirun(*command: str) -> list[str]:
    return [clusters.open_mpi(), "-n", "3", "--oversubscribe", *command]


MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,sm",
}  # fmt: skip


def test_mpirun_in_place_of_the_script(tmp_path: Path) -> None:
    report = report_of(run(mpirun(*CHECK), tmp_path, MPI))
    assert causes(report) == []
    assert [rank["rank"] for rank in report["world"]["ranks"]] == [0, 1, 2]


def test_mpirun_of_ranks_that_can_only_print(tmp_path: Path) -> None:
    printed = run(mpirun(sys.executable, "-m", "phalanx", "check", "--print"), tmp_path, MPI)
    report = report_of(run([*CHECK, "--read", "-"], tmp_path, text=printed))
    assert causes(report) == []
    assert [rank["rank"] for rank in report["world"]["ranks"]] == [0, 1, 2]


ON_RAY = """
import json, sys
from phalanx.preflight.check import examine
from phalanx.preflight.meeting.on_ray import targets_on_ray
from phalanx.preflight.options import CheckOptions
targets = targets_on_ray(sys.argv[1], 60.0)
report = examine(targets, CheckOptions())
print(json.dumps([len({target.ask("facts", {"sections": ["who"]}, 30)[0]["who"]["pid"] for target in targets}), report.read, report.to_json()]))
"""


def test_two_nodes_of_a_ray_cluster(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    clusters.needs_ray()
    with shared("ray", tmp_path_factory) as (_, address):
        printed = run([sys.executable, "-c", ON_RAY, address], tmp_path)
        report = report_of(run([*CHECK, "--hosts", f"ray:{address}", "--wait", "60"], tmp_path))
    processes, read, same = json.loads(printed.splitlines()[-1])
    assert processes == 2
    assert len(read) == len(set(read)) == 2
    assert causes(same) == causes(report) == []
    assert not [item for item in report["not_checked"] if item["what"].startswith("everything on")]


def test_the_nodes_of_a_slurm_job_by_its_number(slurm: Slurm, tmp_path: Path) -> None:
    command = ["sbatch", "--parsable", "-N", "3", "-o", "/dev/null", "--wrap", "sleep 120"]
    job = run(command, tmp_path, slurm.environment).strip()
    end = time.monotonic() + 60  # the nodes may still be taken by a job of the test before
    while run(["squeue", "-h", "-j", job, "-o", "%T"], tmp_path, slurm.environment).strip() != "RUNNING":
        assert time.monotonic() < end, "the job does not start"
        time.sleep(0.5)
    try:
        each = f"srun --jobid {job} --overlap -N 1 -n 1 -w {{host}}"
        words = ["--hosts", f"slurm:{job}", "--each", each, "--python", sys.executable]
        report = report_of(run([*CHECK, *words], tmp_path, slurm.environment))
    finally:
        run(["scancel", job], tmp_path, slurm.environment)
    assert len(report["world"]["hosts"]) == 3
    assert causes(report) == []
