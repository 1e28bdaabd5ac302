"""Every rule is documented in one form, fires on its bad example, is silent on its good one, and has a code of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS
from phalanx.knowledge import load_rules as load_diagnosis_rules
from phalanx.lint import LintOptions, lint_paths
from phalanx.lint.rule import Loaded, load_rules

RULES = load_rules()
SECTIONS = ("## What it does", "## Why is this bad?", "## Example", "Use instead:")


@pytest.mark.parametrize("loaded", RULES, ids=lambda loaded: loaded.rule.code)
def test_bad_example_is_found_and_good_one_is_clean(loaded: Loaded, tmp_path: Path) -> None:
    bad, good = loaded.examples
    for name, text in (("bad", bad), ("good", good)):
        (tmp_path / f"{name}.py").write_text(text)
    # Rules outside of the default set are asked by name.
    options = LintOptions() if loaded.rule.default else LintOptions(select=(loaded.rule.code,))
    found = lint_paths([str(tmp_path / "bad.py")], options).report
    assert [finding.rule for finding in found.findings] == [loaded.rule.code], [f.title for f in found.findings]
    assert not found.not_checked
    clean = lint_paths([str(tmp_path / "good.py")], options).report
    assert not clean.findings, [(f.rule, f.title) for f in clean.findings]


@pytest.mark.parametrize("loaded", RULES, ids=lambda loaded: loaded.rule.code)
def test_rule_is_complete(loaded: Loaded) -> None:
    rule = loaded.rule
    assert re.fullmatch(r"L[A-Z]{2}\d{3}", rule.code)
    assert rule.symptom in SYMPTOMS
    assert rule.pattern in FIX_PATTERNS
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.cause)
    positions = [loaded.documentation.find(section) for section in SECTIONS]
    assert -1 not in positions
    assert positions == sorted(positions)
    assert loaded.title.endswith(".")
    assert loaded.why.endswith(".")
    assert rule.do.endswith(".")


def test_codes_are_not_those_of_the_diagnosis() -> None:
    assert not {loaded.rule.code for loaded in RULES} & {rule.code for rule in load_diagnosis_rules()}
    assert len({(loaded.group, loaded.name) for loaded in RULES}) == len(RULES)


@pytest.mark.parametrize(
    "loaded", [item for item in RULES if "--fix" in item.documentation], ids=lambda item: item.rule.code
)
def test_safe_repair_of_the_bad_example_leaves_nothing_to_find(loaded: Loaded, tmp_path: Path) -> None:
    from phalanx.lint.fixes import repair_files

    path = tmp_path / "bad.py"
    path.write_text(loaded.examples[0])
    shown = repair_files(lint_paths([str(path)]).repairs, write=True)
    assert shown.startswith("--- a/")
    assert not lint_paths([str(path)]).report.findings, path.read_text()
