"""The shipped rules as a whole: loadable, numerous, covering every symptom and framework, each passing its own cases."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from phalanx.diagnosis.cases import check_rule
from phalanx.knowledge import SYMPTOMS, Rule, load_rules
from phalanx.knowledge.pack import BUILT_IN, load_folders, load_pack, removed_codes

from .test_loader import GOOD

RULES = load_rules()


def test_every_shipped_file_loads() -> None:
    assert load_pack().problems == ()


def test_there_are_enough_rules() -> None:
    assert len(RULES) >= 150
    for framework in ("torch", "tensorflow", "keras", "horovod"):
        assert sum(framework in rule.frameworks for rule in RULES) >= 15, framework


@pytest.mark.parametrize("symptom", sorted(SYMPTOMS.keys() - {"perf.other"}))
def test_every_symptom_that_programs_tell_of_is_covered(symptom: str) -> None:
    assert sum(symptom in (rule.symptom, *rule.by_stage.values()) for rule in RULES) >= 3


def test_rules_lie_in_the_folder_of_their_symptom_under_the_code_of_it() -> None:
    prefixes = Counter((rule.symptom, rule.code[:3]) for rule in RULES)
    assert len({symptom for symptom, _ in prefixes}) == len(prefixes), "one prefix a symptom"
    for rule in RULES:
        assert rule.path.parent == BUILT_IN / rule.symptom


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_rule_passes_its_cases_among_all_others(rule: Rule) -> None:
    assert check_rule(rule, RULES) == []


def test_a_bad_file_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(GOOD)
    (tmp_path / "same-code.md").write_text(GOOD)
    (tmp_path / "bad.md").write_text("no front matter")
    (tmp_path / "latin.md").write_bytes(b"+++\n\xff\n+++\n")
    pack = load_folders([tmp_path])
    assert [rule.code for rule in pack.rules] == ["TST001"]
    assert len(pack.problems) == 3
    assert any("is also that of" in problem for problem in pack.problems)


def test_rules_of_other_packages_are_found_without_running_them(tmp_path: Path) -> None:
    package = tmp_path / "site_rules"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('this code must not run')\n")
    (package / "rule.md").write_text(GOOD)
    metadata = tmp_path / "site_rules-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: site-rules\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[phalanx.rules]\nsite = site_rules\n")
    code = "from phalanx.knowledge import load_rules; print('TST001' in {rule.code for rule in load_rules()})"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert done.stdout.strip() == "True", done.stderr


def test_codes_of_removed_rules_stay_taken() -> None:
    removed = removed_codes()
    assert "LOW002" in removed
    assert not removed & {rule.code for rule in RULES}
