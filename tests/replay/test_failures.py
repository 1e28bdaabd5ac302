"""A peer dies: whoever waits hears of it as without a recorder, in Python and in C++."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from .jobs import record
from .test_quick import kernel

__all__ = ["kernel"]  # a fixture
pytestmark = [
    pytest.mark.job,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]


# full recordings pass Python always
@pytest.mark.parametrize(
    ("mode", "way"),
    [("light", "compiled"), ("ring", "compiled"), ("light", "Python"), ("ring", "Python"), ("full", "Python")],
)
def test_the_survivor_hears_of_it_in_every_kind_of_call(kernel: str, tmp_path: Path, mode: str, way: str) -> None:
    shutil.copyfile(Path(__file__).with_name("deaf.py"), tmp_path / "train.py")
    variables = {"PHALANX_NO_CACHE": "1"} if way == "Python" else {}
    done = record(tmp_path, mode, 2, options=("--grace", "60"), **variables)
    said = (done.rank(0) / "output.log").read_text().splitlines()
    assert "all tried" in said, said
    assert [line for line in said if line.endswith(": deaf")] == []
    assert len([line for line in said if line.endswith("Error")]) == 13, said
    assert "recording stopped" not in done.err
    assert way in (done.rank(0) / "record" / "meta.json").read_text()
