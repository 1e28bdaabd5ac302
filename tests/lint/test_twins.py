"""Broken scripts and their corrected twins, in styles that the rules' own examples do not have.

In `twins/*.txt` a line `=== name` begins a script, `--- helper.py` a file that it imports; lines that end in `#-` are only
in the broken one, those that end in `#+` only in the corrected one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phalanx.lint import lint_paths
from phalanx.model import Report

FOLDER = Path(__file__).parent


def scripts(path: Path) -> list[tuple[str, str]]:
    found = re.findall(r"^=== (\w+)\n(.*?)(?=^=== |\Z)", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [(f"{path.stem}-{name}", text) for name, text in found]


TWINS = [item for path in sorted((FOLDER / "twins").glob("*.txt")) for item in scripts(path)]
HEALTHY = scripts(FOLDER / "healthy.txt")


def version(text: str, kept: str, dropped: str) -> str:
    lines = [line for line in text.split("\n") if not line.endswith(dropped)]
    return "\n".join(line.removesuffix(kept).rstrip() for line in lines)


def lint(folder: Path, text: str) -> Report:
    """The report on a script, with its helper files beside it."""
    folder.mkdir()
    script, *helpers = re.split(r"^--- (\S+)\n", text, flags=re.MULTILINE)
    (folder / "train.py").write_text(script)
    for name, content in zip(helpers[::2], helpers[1::2], strict=True):
        (folder / name).write_text(content)
    return lint_paths([str(folder / "train.py")]).report


@pytest.mark.parametrize(("name", "text"), TWINS, ids=[name for name, _ in TWINS])
def test_broken_script_is_found_and_its_twin_is_clean(name: str, text: str, tmp_path: Path) -> None:
    broken = lint(tmp_path / "broken", version(text, "#-", "#+"))
    corrected = lint(tmp_path / "corrected", version(text, "#+", "#-"))
    assert broken.findings
    assert not corrected.findings, [(finding.rule, finding.title) for finding in corrected.findings]
    assert not broken.not_checked
    assert not corrected.not_checked


@pytest.mark.parametrize(("name", "text"), HEALTHY, ids=[name for name, _ in HEALTHY])
def test_unusual_but_correct_script_is_clean(name: str, text: str, tmp_path: Path) -> None:
    report = lint(tmp_path / "healthy", text)
    assert not report.findings, [(finding.rule, finding.title) for finding in report.findings]
    assert not report.not_checked
