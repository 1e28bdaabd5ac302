"""Who left out a call, or made one too many, by the journals of all ranks and the script."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.model import Frame
from phalanx.run.watch.deviation import find_deviation
from phalanx.run.watch.journals import Journal, Made, Passes

SCRIPT = """\
for step in range(40):
    if bad(x):
        continue
    train(x)
    if {condition}:
        allreduce(loss)
"""


def call(file: Path, line: int, passes: Passes, done: bool = True, op: str = "allreduce") -> Made:
    return Made("all", 0, op, f"line{line}", "", Frame(str(file), line, "<module>"), passes, done)


def journal(calls: list[Made]) -> Journal:
    return Journal("horovod", True, len(calls), tuple(calls))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def steps(file: Path, upto: int, without: int | None = None) -> list[Made]:
    """Both calls in every step."""
    return [
        call(file, line, (("step", step),))
        for step in range(upto)
        for line in (4, 6)
        if not (step == without and line == 6)
    ]


def test_a_call_that_was_usual_is_missed_whatever_condition_it_stands_under(script: Path) -> None:
    script.write_text(SCRIPT.format(condition="not (rank == 1 and step == 12)"))
    waits = [*steps(script, 12), call(script, 4, (("step", 12),)), call(script, 6, (("step", 12),), done=False)]
    went_on = [*steps(script, 13, without=12), call(script, 4, (("step", 13),), done=False)]
    found = find_deviation({0: journal(waits), 1: journal(went_on)}, frozenset(), 2)
    assert found is not None
    assert found.culprits == {1}
    assert found.reason == "skipped"
    assert "in step 12" in found.text
    assert "not (rank == 1 and step == 12)" in found.text


@pytest.mark.parametrize(
    ("condition", "culprit"),
    [
        ("step == 1 and rank == 0", 0),  # names who comes: it went off the course
        ("step == 1 and rank != 1", 1),  # names who does not come
        ("step == 1 and not (rank == 1)", 1),
        ("step == 1", 1),  # every rank should have come
        ("loss < 3", None),  # nobody knows who is right
        ("me == 0", 0),  # the rank under another name
        ("step == 1 and mine == 0", None),  # who knows what it was given
        ("step == 1 and often == 1", 1),
    ],
)
def test_a_call_that_was_never_made_before(script: Path, condition: str, culprit: int | None) -> None:
    given = 'me = json.loads(os.environ["TF_CONFIG"])["task"]["index"]; mine = load(); often = 1'
    text = SCRIPT.format(condition=condition).replace("train(x)", "loss = train(x)")
    script.write_text(f"{text}{given}\n")
    waits = [call(script, 4, (("step", 0),)), call(script, 4, (("step", 1),)), call(script, 6, (("step", 1),), False)]
    went_on = [*(call(script, 4, (("step", step),)) for step in range(2)), call(script, 4, (("step", 2),), False)]
    found = find_deviation({0: journal(waits), 1: journal(went_on)}, frozenset(), 2)
    assert (found.culprits if found is not None else None) == (None if culprit is None else {culprit})


def test_a_pass_left_by_continue_is_located(script: Path) -> None:
    script.write_text(SCRIPT.format(condition="step == 39"))
    whole = [call(script, 4, (("step", step),), done=step < 9) for step in range(10)]
    short = [call(script, 4, (("step", step),)) for step in range(10) if step != 5]
    after = call(script, 9, (), done=False)
    found = find_deviation({0: journal(whole), 1: journal([*short, after])}, frozenset(), 2)
    assert found is not None
    assert found.culprits == {1}
    assert "in step 5" in found.text
    assert "train.py:3, under `if bad(x)`" in found.text


def test_most_are_right(script: Path) -> None:
    script.write_text(SCRIPT.format(condition="loss < 3"))
    alone = [call(script, 4, (("step", 0),)), call(script, 6, (("step", 0),), False)]
    rest = [call(script, 4, (("step", 0),)), call(script, 4, (("step", 1),), False)]
    found = find_deviation({0: journal(rest), 1: journal(alone), 2: journal(rest)}, frozenset(), 3)
    assert found is not None
    assert found.culprits == {1}
    assert found.reason == "extra"


def test_fewer_calls_in_a_loop_that_does_not_count(script: Path) -> None:
    script.write_text("for x in loader:\n    backward()\nallreduce()\n")
    longer = [call(script, 2, (), done=number < 12) for number in range(13)]
    shorter = [*(call(script, 2, ()) for _ in range(12)), call(script, 3, (), False)]
    found = find_deviation({0: journal(longer), 1: journal(shorter)}, frozenset(), 2)
    assert found is not None
    assert found.culprits == {1}
    assert "made 12 calls" in found.text
    assert "(13)" in found.text


def test_ranks_in_step_accuse_nobody(script: Path) -> None:
    script.write_text(SCRIPT.format(condition="True"))
    alike = [*steps(script, 5), call(script, 4, (("step", 5),), done=False)]
    assert find_deviation({0: journal(alike), 1: journal(alike)}, frozenset(), 2) is None
    # one is only later: it has not passed what the other did
    assert find_deviation({0: journal(alike), 1: journal(alike[:-3])}, frozenset(), 2) is None


def test_who_joined_takes_part_in_everything(script: Path) -> None:
    script.write_text(SCRIPT.format(condition="True"))
    waits = [*steps(script, 5), call(script, 4, (("step", 5),), done=False)]
    joined = [*steps(script, 5), call(script, 9, (), done=False, op="join")]
    assert find_deviation({0: journal(waits), 1: journal(joined)}, frozenset(), 2) is None
