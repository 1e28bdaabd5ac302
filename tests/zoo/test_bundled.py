"""Faults started by `phalanx run`: which may be, by what command, and what is kept."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import phalanx
from phalanx.zoo.bundled import VERDICT, bundled_plan, can_be_watched
from phalanx.zoo.fault import Cure, Fault, FaultError, RunPlan
from phalanx.zoo.runner import run_fault

PLAN = RunPlan("torchrun", ("torchrun", "--nproc-per-node", "2", "train.py", "--lr", "1"), 2, 60.0, "merged")
FAULT = Fault(Path("torch-x"), "t", "torch", False, "train", PLAN)


def test_the_same_script_with_the_same_arguments_is_started(tmp_path: Path) -> None:
    plan = bundled_plan(FAULT, replace(PLAN, env={"A": "1", "TF_CONFIG": "{}"}), tmp_path)
    words = " ".join(plan.command)
    assert " run -n 2 --framework torch --bundle bundle --timeout 60 " in words
    assert words.endswith("train.py --lr 1")
    assert f"--python {tmp_path}/bin/python" in words
    # the jobs are watched by the code that is at work here, whatever is installed
    assert plan.env == {"A": "1", "PYTHONPATH": str(Path(phalanx.__file__).parents[1])}


@pytest.mark.parametrize("said", [("--max-restarts", "2"), ("--max_restarts=2",)])
def test_restarts_are_kept(said: tuple[str, ...]) -> None:
    plan = replace(PLAN, command=("torchrun", *said, "train.py", "--max-restarts", "9"))
    words = " ".join(bundled_plan(replace(FAULT, run=plan), plan, None).command)
    assert " --max-restarts 2 train.py --max-restarts 9" in words


@pytest.mark.parametrize(
    "plan",
    [
        replace(PLAN, launcher="pip", command=("pip", "install", "x")),
        replace(PLAN, command=("bash", "launch.sh")),
        replace(PLAN, launcher="processes", command=("python", "train.py"), layout="per-rank", start=(0,)),
        replace(
            PLAN, launcher="processes", command=("python", "train.py"), layout="per-rank", rank_env={1: {"RANK": "7"}}
        ),
    ],
)
def test_where_the_launch_is_the_fault_it_stays_as_it_is(plan: RunPlan) -> None:
    fault = replace(FAULT, run=plan)
    assert not can_be_watched(fault)
    with pytest.raises(FaultError, match="its own way of launching is part of it"):
        bundled_plan(fault, plan, None)


@pytest.mark.parametrize(
    ("cure", "watchable"),
    [
        (Cure(command=("torchrun", "--nproc-per-node", "3", "train.py")), False),
        (Cure(command=("torchrun", "--nproc-per-node", "2", "train.py", "--lr", "2")), True),
        (Cure(env={"TF_CONFIG": "{}"}), False),
        (Cure(env={"GLOO_SOCKET_IFNAME": "lo"}), True),
    ],
)
def test_where_only_the_launch_is_cured_another_launcher_would_cure_it(cure: Cure, watchable: bool) -> None:
    assert can_be_watched(replace(FAULT, cure=cure)) is watchable


def test_a_verdict_is_told_by_the_line_that_names_whom() -> None:
    assert VERDICT.search("✗ Ranks wait for one\n  who  rank 2; ranks 0-1 suffered from it\n".encode())
    assert not VERDICT.search(b"[0]   who  knows\n")


@pytest.mark.skipif(importlib.util.find_spec("phalanx.cli.run") is None, reason="needs the verb `phalanx run`")
def test_a_bundle_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "torch-raises"
    folder.mkdir()
    script = "import os, time\nprint('step 1 loss 0.5', flush=True)\nif os.environ['RANK'] == '1': raise ValueError('odd')\ntime.sleep(60)"
    (folder / "train.py").write_text(script, encoding="utf-8")
    outcome = run_fault(replace(FAULT, folder=folder), Path(sys.prefix), tmp_path / "out", watched=True)
    assert not outcome.clean
    assert outcome.spoke_s is not None
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["verdict"]["culprit_ranks"] == [1]
    logs = "".join(file.read_text(encoding="utf-8") for file in (tmp_path / "out").rglob("output.log"))
    assert re.search(r"ValueError: odd", logs)
