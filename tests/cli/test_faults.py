"""`phalanx faults` as a command: lists, runs side by side, stops and goes on, scores, and speaks clearly of bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from phalanx.cli import app

RUNNER = CliRunner()
ZOO = Path(__file__).resolve().parents[2] / "faults"
FAULT = """
title = "{name}"
framework = "torch"
healthy = {healthy}
{truth}
split = "train"
[run]
launcher = "python"
command = [{python}, "train.py"]
world_size = 1
timeout_s = {timeout}
layout = "merged"
"""
TRUTH = """symptom = "fail.out-of-memory"
cause = "device-memory-exhausted"
culprit_ranks = []
distributed_specific = false
stage = "training & evaluation"
accepted_fixes = ["fix-batch-size-or-data-partition", "fix-memory-or-core-setting"]"""


def add(
    zoo: Path, name: str, script: str, *, healthy: bool = False, cured: str | None = None, timeout: int = 60
) -> None:
    folder = zoo / name
    folder.mkdir(parents=True)
    text = FAULT.format(
        name=name,
        healthy=str(healthy).lower(),
        truth="" if healthy else TRUTH,
        python=json.dumps(sys.executable),
        timeout=timeout,
    )
    (folder / "fault.toml").write_text(text, encoding="utf-8")
    (folder / "train.py").write_text(script, encoding="utf-8")
    if cured is not None:
        (folder / "cured.py").write_text(cured, encoding="utf-8")


def command(*words: str) -> list[str]:
    return [sys.executable, "-c", "from phalanx.cli import main; main()", "faults", *words]


def faults(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=250, check=False)


BREAKS = """
print("[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
raise SystemExit(1)
"""


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    root = tmp_path / "faults"
    add(root, "torch-no-memory", BREAKS, cured="print('step 1 loss 0.5')")
    add(root, "torch-healthy", "print('step 1 loss 0.5')", healthy=True)
    return root


def test_runs_faults_and_cures_and_writes_down_what_passed(zoo: Path, tmp_path: Path) -> None:
    common = ("--zoo", str(zoo), "--venv", sys.prefix, "--keep", str(tmp_path / "runs"))
    done = faults("run", "--all", *common)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "torch-no-memory: ok" in done.stdout
    assert "2 of 2 as they must be" in done.stdout
    assert "CUDA out of memory" in (tmp_path / "runs" / "faulty" / "torch-no-memory" / "job.log").read_text()
    assert list(json.loads((zoo / "proven.json").read_text())) == ["torch-healthy"]
    done = faults("run", "--all", "--cured", *common)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(json.loads((zoo / "proven.json").read_text())) == ["torch-healthy", "torch-no-memory"]
    again = faults("run", "--all", "--resume", *common)
    assert "0 of 0 as they must be" in again.stdout


def test_a_fault_that_does_not_show_is_a_failure(zoo: Path, tmp_path: Path) -> None:
    (zoo / "torch-no-memory" / "train.py").write_text("print('fine')", encoding="utf-8")
    done = faults("run", "torch-no-memory", "--zoo", str(zoo), "--venv", sys.prefix, "--keep", str(tmp_path / "runs"))
    assert done.returncode == 1
    assert "FAILED: the fault must fail or hang" in done.stdout


def test_ctrl_c_ends_what_runs_and_resume_goes_on(tmp_path: Path) -> None:
    zoo = tmp_path / "faults"
    add(zoo, "torch-a", "raise SystemExit(1)", timeout=100)
    add(zoo, "torch-b", "import time; open('/dev/null'); time.sleep(90); raise SystemExit(1)", timeout=50)
    words = ("run", "--all", "--zoo", str(zoo), "--venv", sys.prefix, "--keep", str(tmp_path / "runs"), "--jobs", "1")
    results = tmp_path / "runs" / "results.jsonl"
    with subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not results.is_file() and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "`--resume` goes on from here" in said
    assert [json.loads(line)["name"] for line in results.read_text().splitlines()] == ["torch-a"]


def test_ablation_shows_what_the_rule_that_speaks_earns(tmp_path: Path) -> None:
    add(tmp_path, "torch-no-memory", "")
    recorded = tmp_path / "torch-no-memory" / "recorded"
    recorded.mkdir()
    (recorded / "job.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    done = faults("score", "torch-no-memory", "--ablate", "--zoo", str(tmp_path), "--format", "json")
    parts = {(part["kind"], part["name"]): part for part in json.loads(done.stdout)["parts"]}
    assert parts["rule", "OOM001"]["train"]["cause"] == -1
    assert parts["rule", "OOM001"]["logs"] == ["torch-no-memory"]
    assert parts["rule", "SEG001"]["logs"] == []
    text = faults("score", "torch-no-memory", "--ablate", "--zoo", str(tmp_path)).stdout
    assert "rule OOM001" in text
    assert "change nothing" in text


def test_scores_logs_and_other_tools_reports(zoo: Path, tmp_path: Path) -> None:
    assert (
        faults("run", "--all", "--record", "--zoo", str(zoo), "--venv", sys.prefix, "--keep", str(tmp_path)).returncode
        == 0
    )
    done = faults("score", "--zoo", str(zoo), "--format", "json")
    made = json.loads(done.stdout)
    assert made["schema"] == "phalanx.score/2"
    assert made["all"]["symptom_first"] == 1.0
    assert made["all"]["seconds"] > 0
    reports = tmp_path / "reports"
    reports.mkdir()
    wrong = {"verdict": {"symptom": "perf.hang", "culprit_ranks": [0], "fixes": []}}
    (reports / "torch-no-memory.json").write_text(json.dumps(wrong), encoding="utf-8")
    other = json.loads(faults("score", "--zoo", str(zoo), "--reports", str(reports), "--format", "json").stdout)
    assert other["all"]["symptom_first"] == 0.0
    assert other["all"]["innocent_accused"] == 0.5
    assert other["all"]["false_alarms"] == 0
    svg = tmp_path / "zoo.svg"
    text = faults("score", "--zoo", str(zoo), "--svg", str(svg), "--misses").stdout
    assert "framework torch" in text
    assert svg.read_text(encoding="utf-8").startswith("<svg ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run",), "name the faults to run, or give --all"),
        (("run", "--all", "--venv", "/nowhere"), "--venv /nowhere: there is no bin/python in it"),
        (("run", "--all", "--with", "magic"), "--with magic: it is phalanx-run, or left out"),
        (("run", "torch-none"), "there is no fault torch-none"),
        (("score", "--format", "xml"), "--format xml: it is one of text, json, markdown"),
        (("score", "--write", "no-such-page.md"), "no-such-page.md"),
        (("list", "--zoo", "nowhere"), "no faults below nowhere"),
    ],
)
def test_bad_input_is_said_without_a_traceback(zoo: Path, words: tuple[str, ...], said: str) -> None:
    where = () if "--zoo" in words else ("--zoo", str(zoo))
    done = faults(*words, *where)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_gaps_in_the_coverage_are_told_by_the_exit_code(zoo: Path) -> None:
    done = faults("list", "--coverage", "--zoo", str(zoo))
    assert done.returncode == 1
    assert "perf.hang" in done.stdout
    assert "MISSING: 1 wanted" in done.stdout


def test_which_job_covers_what_is_put_into_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- made by `phalanx faults list --coverage --write` -->\n<!-- end -->\n\nafter\n")
    done = RUNNER.invoke(app, ["faults", "list", "--zoo", str(ZOO), "--coverage", "--write", str(page)])
    assert done.exit_code == 0
    text = page.read_text()
    assert "| cause: stopped rank (SIGSTOP) | 1 | torch-frozen-rank |" in text
    assert text.endswith("<!-- end -->\n\nafter\n")


def test_a_page_without_markers_and_a_write_without_coverage_are_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n")
    listed = ["faults", "list", "--zoo", str(ZOO), "--write", str(page)]
    for words, told in (
        (listed, "--write goes with --coverage"),
        ([*listed, "--coverage"], "the page needs the lines"),
    ):
        done = RUNNER.invoke(app, words)
        assert done.exit_code == 2
        assert told in done.output
    assert page.read_text() == "# Page\n"
