"""The zoo's healthy jobs that seem to stand still for a while: no alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import needs_torch
from tests.run.watch.job import running

pytestmark = [pytest.mark.job, pytest.mark.timeout(280), needs_torch]
FAULTS = Path(__file__).parents[3] / "faults"


@pytest.mark.parametrize(
    ("name", "size", "inside"),
    [
        ("torch-healthy-slow-evaluation", 3, True),
        ("torch-healthy-slow-evaluation", 3, False),
        ("torch-healthy-long-checkpoint", 2, True),
        ("torch-healthy-late-starter", 3, True),
    ],
)
def test_no_alarm(tmp_path: Path, name: str, size: int, inside: bool) -> None:
    script = (FAULTS / name / "train.py").read_text()
    with running(tmp_path, script, size, inside=inside) as job:
        assert job.until(lambda job: job.over, 200)
        assert set(job.codes.values()) == {0}, job.texts
        assert [seen for seen in job.observations if seen.kind in ("stall", "network", "death")] == []
        assert (job.attempt / "samples.jsonl").stat().st_size > 0
