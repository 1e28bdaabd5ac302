"""Broken scripts and their corrected twins, in styles that the rules' own examples do not have.

In `twins/*.txt` a line `=== name` begins a script; lines that end in `#-` are only in the broken one, those that end in
`#+` only in the corrected one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phalanx.lint import lint_paths

TWINS = [
    (f"{path.stem}-{name}", text)
    for path in sorted((Path(__file__).parent / "twins").glob("*.txt"))
    for name, text in re.findall(r"^=== (\w+)\n(.*?)(?=^=== |\Z)", path.read_text(), flags=re.DOTALL | re.MULTILINE)
]


def version(text: str, kept: str, dropped: str) -> str:
    lines = [line for line in text.split("\n") if not line.endswith(dropped)]
    return "\n".join(line.removesuffix(kept).rstrip() for line in lines)


@pytest.mark.parametrize(("name", "text"), TWINS, ids=[name for name, _ in TWINS])
def test_broken_script_is_found_and_its_twin_is_clean(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.py"
    path.write_text(version(text, "#-", "#+"))
    broken = lint_paths([str(path)]).report
    path.write_text(version(text, "#+", "#-"))
    corrected = lint_paths([str(path)]).report
    assert broken.findings
    assert not corrected.findings, [(finding.rule, finding.title) for finding in corrected.findings]
    assert not broken.not_checked
    assert not corrected.not_checked
