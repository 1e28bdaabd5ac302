"""A diagnosis names the rule for scripts that finds the same fault in the source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from phalanx.cli.lint_link import with_script_rule
from phalanx.lint import lint_paths
from phalanx.model import Place, Report, World

SCRIPT = """\
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 0:
    dist.barrier()
"""


def report_of(script: Path, cause: str) -> Report:
    """A report whose verdict names the last line of a script."""
    (finding,) = lint_paths([str(script)]).report.findings
    verdict = replace(finding, rule="CER062", cause=cause, evidence=(), place=Place(str(script), 5))
    return Report(World(), findings=(verdict,))


def test_verdict_names_the_rule_and_its_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    joined = with_script_rule(report_of(script, "rank-conditional-collective")).verdict
    assert joined is not None
    (told,) = joined.evidence
    assert (told.file, told.line) == (str(script), 5)
    assert "LCM001" in told.text


def test_another_cause_is_left_alone(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    report = report_of(script, "user-exception")
    assert with_script_rule(report) is report


def test_script_that_is_not_here_is_no_error(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    report = report_of(script, "rank-conditional-collective")
    script.unlink()
    assert with_script_rule(report) is report
