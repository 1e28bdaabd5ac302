"""Fixes in order: the rule's own, then what cured the symptom in the study, for this framework first."""

from __future__ import annotations

from phalanx.knowledge.figures import fix_share, frequent_fixes, load_figures

from ..conftest import Diagnose


def test_framework_comes_before_the_whole() -> None:
    counts = load_figures()["symptoms"]["perf.hang"]["by_framework"]["tensorflow"]["fixes"]
    ranked = [name for name in frequent_fixes("perf.hang", "tensorflow") if name in counts]
    assert [counts[name] for name in ranked] == sorted((counts[name] for name in ranked), reverse=True)


def test_a_verdict_has_at_least_three_fixes_without_repetition(diagnose: Diagnose) -> None:
    verdict = diagnose('Traceback (most recent call last):\n  File "a.py", line 1, in f\nZorkError: lamp\n').verdict
    assert verdict is not None
    patterns = [fix.pattern for fix in verdict.fixes]
    assert len(patterns) == len(set(patterns)) >= 3
    assert all(fix.do and fix.why for fix in verdict.fixes)
    assert verdict.fixes[0].study_share == round(fix_share(verdict.symptom, patterns[0]), 3)


def test_the_unusable_checkpoint_is_cured_as_in_the_study(diagnose: Diagnose) -> None:
    log = (
        "RuntimeError: Error(s) in loading state_dict for ResNet:\n"
        '\tMissing key(s) in state_dict: "conv1.weight".\n\tUnexpected key(s) in state_dict: "module.conv1.weight".\n'
    )
    verdict = diagnose(log).verdict
    assert verdict is not None
    assert verdict.symptom == "fail.checkpoint-unusable"
    assert verdict.fixes[0].pattern == "save-single-device-weights-only"
    assert verdict.fixes[0].study_share == round(17 / 21, 3)
