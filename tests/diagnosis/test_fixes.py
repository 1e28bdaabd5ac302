"""Fixes in order: the rule's own, then what cured the symptom in the study, for this framework first."""

from __future__ import annotations

from phalanx.knowledge.figures import fix_share, frequent_fixes, load_figures

from ..conftest import Diagnose


def test_what_cured_several_faults_in_the_framework_comes_before_the_whole() -> None:
    entry = load_figures()["symptoms"]["perf.unexpected-parallelization-or-device"]
    here = entry["by_framework"]["tensorflow"]["fixes"]
    solid = sorted((name for name in here if here[name] >= 3 and name != "other"), key=lambda name: -here[name])
    ranked = frequent_fixes("perf.unexpected-parallelization-or-device", "tensorflow")
    assert solid
    assert ranked[: len(solid)] == solid


def test_single_cures_in_a_framework_do_not_outweigh_all_the_others() -> None:
    entry = load_figures()["symptoms"]["perf.unexpected-intermediate-result"]
    assert max(entry["by_framework"]["torch"]["fixes"].values()) < 3
    first = [entry["fixes"][name] for name in frequent_fixes("perf.unexpected-intermediate-result", "torch")[:3]]
    most = sorted((count for name, count in entry["fixes"].items() if name != "other"), reverse=True)
    assert first == most[:3]


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


def test_the_line_that_matched_points_to_its_fix_where_the_exception_is_cut_off(diagnose: Diagnose) -> None:
    log = (
        "ERROR: Failed building wheel for horovod\nTraceback (most recent call last):\n"
        '  File "/tmp/pip-install-1/horovod/setup.py", line 3, in <module>\n    import tensorflow\n'
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory\n\n"
        "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n"
        '  File "/tmp/pip-install-1/horovod/setup.py", line 9, in <module>\n'
    )
    verdict = diagnose(log).verdict
    assert verdict is not None
    assert verdict.fixes[0].pattern == "fix-dependency-path"
