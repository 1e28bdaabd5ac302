"""The raters' spellings: what is folded, what is moved, what is left a label of its own."""

import pytest

from phalanx.study.labels import FIX_PATTERNS, SYMPTOMS
from phalanx.study.reproduce.spellings import FAULT, HOW_TO, UNRATED, fold_rating, fold_topic, known_spellings

TRAINING = "Training & Evaluation"


@pytest.mark.parametrize(
    ("stage", "inner", "leaf", "fix", "symptom", "pattern", "shifted"),
    [
        (TRAINING, "Program Failures", "Tensor mismatch", "fix data type", "fail.tensor-mismatch", "fix-data-type", False),
        (TRAINING, "program failure", "tensosr mismatch", "fix data type", "fail.tensor-mismatch", "fix-data-type", False),
        (TRAINING, "unexpected behaviour", "hang", "PENDING", "perf.hang", "pending", False),
        (TRAINING, "program failure", "PENING", None, "fail.pending", "pending", False),
        ("PENDING", None, None, None, "pending", "pending", False),
        ("communication setup", "hang and timeout", "fix command line", None, "comm.hang-timeout", "fix-command-line", True),
        ("communication setup", "setup failure", "setup failure", "use tmux", "comm.setup-failure", "other: use tmux", False),
        ("data and model preparation", None, "structure mismatch", "fix dataset", "prep: structure mismatch", "fix-dataset", False),
    ],
)  # fmt: skip
def test_a_faults_labels(
    stage: str, inner: str | None, leaf: str | None, fix: str | None, symptom: str, pattern: str, shifted: bool
) -> None:
    rating = fold_rating("fault", None, 1, stage, inner, leaf, fix)
    assert (rating.kind, rating.symptom, rating.fix, rating.shifted) == (FAULT, symptom, pattern, shifted)


def test_a_question_and_an_empty_row() -> None:
    assert fold_rating("How-to topic", "device usage", None, None, None, None, None).kind == HOW_TO
    assert fold_rating(None, None, None, None, None, None, None).kind == UNRATED
    assert fold_rating(None, None, 1, TRAINING, "Program Failures", "Out of Memory", "fix batch size").kind == FAULT


def test_a_leaf_of_no_category_is_told() -> None:
    assert (
        fold_rating("fault", None, 1, TRAINING, "program failure", "context issue", "use tmux").unknown
        == "context issue"
    )


def test_topics() -> None:
    assert fold_topic(" API  Usage ") == "api usage"
    assert fold_topic("communitive operator") == "communication operator"
    assert fold_topic(None) == ""


def test_the_shown_table_leads_to_known_ids_and_names_no_spelling_twice() -> None:
    rows = known_spellings()
    assert len({(what, spelling) for what, spelling, _ in rows}) == len(rows)
    for what, _, meaning in rows:
        if what == "fix pattern":
            assert meaning in FIX_PATTERNS
        elif what.startswith("symptom,") and "raters" not in what:
            assert meaning in SYMPTOMS
