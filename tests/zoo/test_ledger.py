"""The ledger of proven cures: written at once, read back, and worthless for changed files."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.zoo import ledger
from phalanx.zoo.fault import Fault, FaultError, RunPlan
from phalanx.zoo.reading import load_zoo

# Each compiles Horovod for minutes; `make zoo` runs them, and only these may still wait for it.
COMPILED = {
    "horovod-build-cmake-missing",
    "horovod-build-cuda-missing",
    "horovod-build-mpi-missing",
    "horovod-build-needs-cpp17",
    "horovod-build-torch-hidden-by-isolation",
}
ZOO = Path(__file__).resolve().parents[2] / "faults"


def fault(folder: Path) -> Fault:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text("print(1)", encoding="utf-8")
    return Fault(folder, "t", "torch", True, "train", RunPlan("python", ("python",), 1, 10.0, "merged"))


def test_a_changed_job_has_no_proof_any_more(tmp_path: Path) -> None:
    one = fault(tmp_path / "torch-a")
    assert ledger.unproven(tmp_path, [one]) == ["torch-a"]
    ledger.note(tmp_path, one, 3.25, {"torch": "2.13.0"})
    assert ledger.unproven(tmp_path, [one]) == []
    proof = ledger.read(tmp_path)["torch-a"]
    assert proof.versions["torch"] == "2.13.0"
    assert proof.versions["python"].startswith("3.")
    (one.folder / "train.py").write_text("print(2)", encoding="utf-8")
    assert ledger.unproven(tmp_path, [one]) == ["torch-a"]


def test_a_damaged_ledger_is_said(tmp_path: Path) -> None:
    (tmp_path / ledger.FILE).write_text('{"torch-a": {"when": 1}}', encoding="utf-8")
    with pytest.raises(FaultError, match="not a ledger"):
        ledger.read(tmp_path)


def test_every_cure_of_the_zoo_was_seen_to_pass() -> None:
    faults = [fault for fault in load_zoo(ZOO) if not fault.healthy]
    assert all(fault.has_cure for fault in faults)
    assert set(ledger.unproven(ZOO, faults)) <= COMPILED
