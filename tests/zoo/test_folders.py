"""Every folder of the zoo keeps to its format: it loads, is recorded, has a cure, names no machine."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from phalanx.zoo.fault import FRAMEWORKS
from phalanx.zoo.reading import load_fault

ROOT = Path(__file__).resolve().parents[2] / "faults"
FOLDERS = sorted(file.parent for file in ROOT.glob("*/fault.toml"))
# folders of a recording machine; a recorded log has /home/user, /opt/venv and /var/tmp instead
MACHINE = re.compile(r"(?<![\w.])/(tmp|root|work)/|pyenv")


def _text(file: Path) -> str:
    raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return raw.decode("utf-8", "replace")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_folder_keeps_to_the_format(folder: Path) -> None:
    fault = load_fault(folder)
    assert fault.framework in FRAMEWORKS
    assert fault.name.split("-")[0] in FRAMEWORKS
    logs = [file for file in fault.recorded.rglob("*") if file.is_file()]
    assert any(file.stat().st_size for file in logs), "nothing is recorded"
    assert fault.healthy or fault.has_cure, "no cure"
    if fault.run.layout == "per-rank":
        names = {f"rank{rank}.log" for rank in fault.run.started_ranks} | {"exit_codes.json"}
        assert {file.name for file in logs} == names
    for file in logs:
        found = MACHINE.search(_text(file))
        assert found is None, f"{file.relative_to(folder)} names the recording machine: {found and found.group()}"


def test_titles_are_unique_and_both_splits_are_there() -> None:
    faults = [load_fault(folder) for folder in FOLDERS]
    assert {fault.split for fault in faults} == {"train", "test"}
    assert any(fault.healthy for fault in faults)
    titles = [(fault.framework, fault.title) for fault in faults]
    assert len(titles) == len(set(titles))
