"""The verbs called from Python: they return reports, and say in one sentence why they cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phalanx.api.verbs import attach, check, diagnose
from phalanx.calls.errors import PhalanxError

BAD = """\
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.barrier()
"""


def test_diagnose_needs_a_path_that_exists(tmp_path: Path) -> None:
    with pytest.raises(PhalanxError, match="nothing-there"):
        diagnose(tmp_path / "nothing-there")
    with pytest.raises(PhalanxError, match="at least one"):
        diagnose()


def test_check_reads_a_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(BAD)
    report = check(script)
    assert report.verdict is not None
    assert report.verdict.evidence[0].line == 5
    assert not report.ok
    script.write_text(BAD.replace("if dist.get_rank() == 0:\n    ", ""))
    again = check(script)
    assert [finding.rule for finding in again.findings if "rank" in finding.cause] == []


def test_check_says_why_it_cannot(tmp_path: Path) -> None:
    with pytest.raises(PhalanxError, match=r"check: .*train\.py"):
        check(tmp_path / "train.py")


def test_attach_says_that_a_process_is_of_no_job() -> None:
    with pytest.raises(PhalanxError, match="attach: "):
        attach(os.getpid())
