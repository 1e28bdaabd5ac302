"""The loader of fault.toml: what it reads, and what it refuses with which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.zoo.fault import FaultError
from phalanx.zoo.reading import load_fault, load_zoo

GOOD = """
title = "Rank 2 leaves the loop one step early"
framework = "torch"
healthy = false
symptom = "perf.hang"
cause = "uneven-steps"
culprit_ranks = [2]
distributed_specific = true
stage = "training & evaluation"
accepted_fixes = ["fix-batch-size-or-data-partition"]
split = "train"
[run]
launcher = "processes"
command = ["python", "train.py"]
world_size = 4
timeout_s = 60
layout = "per-rank"
env = { A = "1" }
rank_env = { 2 = { MASTER_PORT = "1" } }
start = [0, 2]
[needs]
python = ["torch==2.13.0"]
debian = []
[cured]
env = {}
"""

HEALTHY = """
title = "Nothing is wrong"
framework = "keras"
healthy = true
split = "test"
[run]
launcher = "python"
command = ["python", "train.py"]
world_size = 1
timeout_s = 5
layout = "merged"
"""


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fault.toml").write_text(text, encoding="utf-8")
    return folder


def test_reads_a_whole_fault(tmp_path: Path) -> None:
    fault = load_fault(write(tmp_path / "torch-uneven", GOOD))
    assert fault.name == "torch-uneven"
    assert (fault.symptom, fault.cause, fault.culprit_ranks) == ("perf.hang", "uneven-steps", (2,))
    assert fault.run.command == ("python", "train.py")
    assert fault.run.started_ranks == (0, 2)
    assert fault.run.rank_env == {2: {"MASTER_PORT": "1"}}
    assert fault.needs.python == ("torch==2.13.0",)
    assert fault.cure is not None
    assert fault.cure.env == {}
    assert fault.cure.command is None
    assert fault.recorded == fault.folder / "recorded"


def test_a_healthy_control_needs_no_truth(tmp_path: Path) -> None:
    fault = load_fault(write(tmp_path / "keras-fine", HEALTHY))
    assert fault.healthy
    assert fault.symptom is None
    assert fault.culprit_ranks == ()
    assert fault.cure is None
    assert fault.run.started_ranks == (0,)


def test_the_zoo_is_read_by_name(tmp_path: Path) -> None:
    write(tmp_path / "torch-b", GOOD)
    write(tmp_path / "keras-a", HEALTHY)
    (tmp_path / "no-fault").mkdir()
    assert [fault.name for fault in load_zoo(tmp_path)] == ["keras-a", "torch-b"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('symptom = "perf.hang"', "", "symptom: is missing"),
        ('symptom = "perf.hang"', 'symptom = "hang"', "'hang' is none of the 30"),
        ('cause = "uneven-steps"', 'cause = "Uneven steps"', "has not the form of 'uneven-steps'"),
        ('framework = "torch"', 'framework = "pytorch"', "'pytorch' is not one of torch, tensorflow"),
        ("culprit_ranks = [2]", "culprit_ranks = [4]", "outside of world_size 4"),
        ("culprit_ranks = [2]", "culprit_ranks = 2", "expected list, found int"),
        ("culprit_ranks = [2]", 'culprit_ranks = ["2"]', "expected a list of int"),
        ('["fix-batch-size-or-data-partition"]', "[]", "accepted_fixes: is empty"),
        ("world_size = 4", "world_size = true", "expected int, found bool"),
        ("world_size = 4", "worldsize = 4", "world_size: is missing"),
        ("timeout_s = 60", "timeout_s = 0", "must be above zero"),
        ("timeout_s = 60", 'timeout_s = 60\nshows = "("', "shows: is no regular expression"),
        ("timeout_s = 60", 'timeout_s = 60\nprepare = ["pip"]', "expected a list of commands"),
        ('["fix-batch-size-or-data-partition"]', '["fix-it"]', "'fix-it' is no fix pattern"),
        ('layout = "per-rank"', 'layout = "merged"', "only the layout per-rank"),
        ('env = { A = "1" }', "env = { A = 1 }", "env.A: expected a string"),
        ("rank_env = { 2 =", "rank_env = { two =", "'two' is not a rank"),
        ('split = "train"', 'split = "train"\ncuplrit = 1', "unknown key cuplrit"),
        ('split = "train"', "split = ", "not valid TOML"),
    ],
)
def test_refuses_with_file_and_key(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    folder = write(tmp_path / "torch-bad", GOOD.replace(old, new))
    with pytest.raises(FaultError) as caught:
        load_fault(folder)
    assert str(folder / "fault.toml") in str(caught.value)
    assert words in str(caught.value)


def test_says_that_the_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FaultError, match=r"a fault folder needs a fault\.toml"):
        load_fault(tmp_path)


def test_the_fingerprint_changes_with_what_is_run_and_not_with_labels(tmp_path: Path) -> None:
    folder = write(tmp_path / "torch-f", GOOD)
    (folder / "train.py").write_text("print(1)", encoding="utf-8")
    before = load_fault(folder).fingerprint()
    write(folder, GOOD.replace('symptom = "perf.hang"', 'symptom = "perf.other"').replace("Rank 2 leaves", "It leaves"))
    (folder / "recorded").mkdir()
    (folder / "recorded" / "job.log").write_text("x", encoding="utf-8")
    assert load_fault(folder).fingerprint() == before
    write(folder, GOOD.replace('env = { A = "1" }', 'env = { A = "2" }'))
    changed = load_fault(folder).fingerprint()
    assert changed != before
    (folder / "train.py").write_text("print(2)", encoding="utf-8")
    assert load_fault(folder).fingerprint() != changed


def test_memory_is_estimated_by_processes_unless_it_is_said(tmp_path: Path) -> None:
    fault = load_fault(write(tmp_path / "torch-f", GOOD))
    assert fault.memory_mb == 2 * 300  # two ranks are started, without a launcher
    said = load_fault(write(tmp_path / "torch-g", GOOD.replace("debian = []", "debian = []\nmemory_mb = 5000")))
    assert said.memory_mb == 5000
