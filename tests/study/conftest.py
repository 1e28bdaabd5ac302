"""Where the authors' files are: beside the repository, or where PHALANX_STUDY_DIR says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

STUDY = Path(os.environ.get("PHALANX_STUDY_DIR") or Path(__file__).resolve().parents[3] / "shared" / "study")


@pytest.fixture(scope="session")
def study() -> Path:
    if not (STUDY / "final-categories.xlsx").is_file():
        pytest.skip("the authors' data are not beside the repository (../shared/study), nor is PHALANX_STUDY_DIR set")
    pytest.importorskip("openpyxl", reason="reading the sheet needs the extra `study`")
    return STUDY
