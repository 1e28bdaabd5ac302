"""Two recorded runs compared: of the same job after a change, and with another number of ranks."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from .jobs import phalanx, record
from .test_divergence import prepare

pytestmark = [
    pytest.mark.job,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]


def made(folder: Path, size: int, mode: str = "full", steps: str = "4", lr: str = "0.01") -> Path:
    folder.mkdir()
    prepare(folder)
    script = folder / "train.py"
    script.write_text(script.read_text().replace("lr=0.01", f"lr={lr}"))
    assert record(folder, mode, size, "alike", steps).status == 0
    return folder / "bundle"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("base") / "two", 2)


def compared(one: Path, other: Path) -> dict[str, Any]:
    done = phalanx(one.parent, "compare", str(one), str(other), "-f", "json")
    assert done.status in (0, 1), done.err
    found = dict(json.loads(done.out))
    assert done.status == (1 if found["parting"] else 0)
    return found


def test_a_run_agrees_with_itself(two: Path) -> None:
    found = compared(two, two)
    assert found["parting"] is None
    assert found["compared"] > 8
    assert found["fidelity"] == "bitwise"


def test_a_changed_line_parts_the_runs_and_is_named(two: Path, tmp_path: Path) -> None:
    found = compared(two, made(tmp_path / "other", 2, lr="0.02"))
    parting = found["parting"]
    assert parting["step"] == 1  # the first step differs only by what it changes
    assert parting["what"] == "input"
    assert 0 < parting["relative"] < 1
    assert parting["names"]
    assert any("train.py" in note for note in found["notes"])


def test_another_number_of_ranks_agrees_but_for_the_order_of_adding(two: Path, tmp_path: Path) -> None:
    found = compared(two, made(tmp_path / "three", 3))
    assert found["parting"] is None, found
    assert found["fidelity"] == "tolerance"
    assert found["compared"] >= 4  # results, really compared by their values
    assert any("2 ranks against 3" in note for note in found["notes"])


def test_another_number_of_ranks_and_a_changed_line_part(two: Path, tmp_path: Path) -> None:
    found = compared(two, made(tmp_path / "three", 3, lr="0.05"))
    assert found["parting"]["what"] == "result"
    assert found["parting"]["step"] >= 1
    assert found["parting"]["relative"] > 1e-3


def test_a_run_that_is_longer_parts_where_the_other_ends(two: Path, tmp_path: Path) -> None:
    longer = made(tmp_path / "longer", 2, steps="6")
    for one, other in ((two, longer), (longer, two)):
        parting = compared(one, other)["parting"]
        assert (parting["what"], parting["step"]) == ("length", 4)


def test_light_recordings_of_different_sizes_are_refused(two: Path, tmp_path: Path) -> None:
    light = made(tmp_path / "light", 3, mode="light")
    done = phalanx(tmp_path, "compare", str(two), str(light))
    assert done.status == 2
    assert "--record=full" in done.err
