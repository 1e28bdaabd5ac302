"""The folding table: spellings that mean the same get the same id, and nothing is lost silently."""

import pytest

from phalanx.study.labels import (
    AMBIGUOUS_FIXES,
    CONFIGURATION_PATTERNS,
    FIX_LABELS,
    FIX_PATTERNS,
    STAGES,
    SYMPTOMS,
    UnknownLabelError,
    fold_fixes,
    fold_framework,
    fold_symptom,
    normalise,
)

TRAINING = "training & evaluation"


def test_there_are_exactly_30_symptoms_each_in_a_known_stage() -> None:
    assert len(SYMPTOMS) == len(set(SYMPTOMS)) == 30
    assert {symptom.partition(".")[0] for symptom in SYMPTOMS} == set(STAGES)


def test_the_list_of_fix_patterns_is_closed() -> None:
    assert len(FIX_PATTERNS) == len(set(FIX_PATTERNS)) == 29
    assert FIX_PATTERNS[-1] == "other"
    assert set(FIX_PATTERNS) > CONFIGURATION_PATTERNS


@pytest.mark.parametrize(
    ("stage", "inner", "leaf", "symptom"),
    [
        ("communication setup", None, "hang & timeout", "comm.hang-timeout"),
        ("Communication setup", None, "Hang and timeout", "comm.hang-timeout"),
        ("data and model preparation", None, "hang and timeout", "prep.hang-timeout"),
        (TRAINING, "unexpected performance", "Hang", "perf.hang"),
        (
            TRAINING,
            "Unexpected Performance",
            "unexpected  intermediate result",
            "perf.unexpected-intermediate-result",
        ),
        (
            TRAINING,
            "unexpected performance",
            "Unexpected intermediate results",
            "perf.unexpected-intermediate-result",
        ),
        (
            TRAINING,
            "unexpected performance",
            "Unexpected Device",
            "perf.unexpected-parallelization-or-device",
        ),
        (TRAINING, "unexpected performance", "others", "perf.other"),
        (TRAINING, "program failure", "others", "fail.other"),
        (TRAINING, "program failure", "checkpoint unfunctioning", "fail.checkpoint-unusable"),
        ("Package Build & Import", None, "Installation & Build Failure", "build.install-failure"),
    ],
)
def test_spellings_fold_into_one_symptom(stage: str, inner: str | None, leaf: str, symptom: str) -> None:
    assert fold_symptom(stage, inner, leaf) == symptom


def test_a_rare_leaf_of_preparation_is_gathered_but_a_category_in_training() -> None:
    assert fold_symptom("data and model preparation", None, "low efficiency") == "prep.other"
    assert fold_symptom(TRAINING, "unexpected performance", "low efficiency") == "perf.low-efficiency"


@pytest.mark.parametrize(
    ("stage", "inner", "leaf"),
    [
        ("deployment", None, "hang"),
        (TRAINING, None, "hang"),
        (TRAINING, "unexpected performance", "slow"),
        (None, None, None),
    ],
)
def test_an_unknown_symptom_is_an_error_that_quotes_it(stage: str | None, inner: str | None, leaf: str | None) -> None:
    with pytest.raises(UnknownLabelError, match=f"leaf {leaf!r}"):
        fold_symptom(stage, inner, leaf)


@pytest.mark.parametrize(
    ("cell", "patterns"),
    [
        ("Fix distributed  API usage ", ["fix-distributed-api-usage"]),
        ("fix behaviour logic", ["fix-behavior-logic"]),
        # A slash inside a listed pattern does not join two.
        ("fix batch size/data partition", ["fix-batch-size-or-data-partition"]),
        ("fix data partition/batch size", ["fix-batch-size-or-data-partition"]),
        ("save single-device model/weights only", ["save-single-device-weights-only"]),
        # Joined cells: all are named, in order.
        (
            "fix dependency version & fix memory/core setting",
            ["fix-dependency-version", "fix-memory-or-core-setting"],
        ),
        ("fix dependency version & framework version", ["fix-dependency-version", "fix-framework-version"]),
        ("fix framework verion / fix scope assignment", ["fix-framework-version", "fix-scope-assignment"]),
        (
            "fix framework version / fix model structure / fix distributed API usage",
            ["fix-framework-version", "fix-model-construction", "fix-distributed-api-usage"],
        ),
        (
            "Fix batch size/data partition/learning rate",
            ["fix-batch-size-or-data-partition", "fix-learning-rate"],
        ),
        (
            "install missing dependency & run docker in privileged mode",
            ["install-missing-dependency", "other"],
        ),
        # Outside the closed list.
        ("use tmux", ["other"]),
    ],
)
def test_a_cell_names_its_patterns_in_order(cell: str, patterns: list[str]) -> None:
    assert list(fold_fixes(cell)) == patterns


@pytest.mark.parametrize("cell", [None, "", "  "])
def test_a_fault_without_a_fix_is_an_error_not_other(cell: str | None) -> None:
    with pytest.raises(UnknownLabelError):
        fold_fixes(cell)


def test_the_tables_are_written_in_the_normal_spelling() -> None:
    # A key in another spelling would never be found.
    for label in (*FIX_LABELS, *(case.label for case in AMBIGUOUS_FIXES)):
        assert label == normalise(label)


@pytest.mark.parametrize("case", AMBIGUOUS_FIXES, ids=lambda case: case.label)
def test_every_ambiguous_fix_is_folded_as_the_list_says(case: object) -> None:
    label, chosen, alternative = (getattr(case, name) for name in ("label", "chosen", "alternative"))
    assert fold_fixes(label)[0] == chosen
    assert alternative in FIX_PATTERNS
    assert alternative != chosen


@pytest.mark.parametrize(
    ("kind", "framework"),
    [
        ("GitHub-horovod", "horovod"),
        ("GitHub-pytorch", "torch"),
        ("SO-tensorflow", "tensorflow"),
        ("SO-keras", "keras"),
        ("SO-tensorflow & SO-keras", "tensorflow"),
        ("SO-mxnet", "unknown"),
        (None, "unknown"),
    ],
)
def test_the_framework_is_the_one_the_type_names(kind: str | None, framework: str) -> None:
    assert fold_framework(kind) == framework
