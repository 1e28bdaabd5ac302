"""Jobs of which nothing is left but steps, and then silence."""

from __future__ import annotations

import pytest

from ...conftest import Diagnose

AGAIN = "upload failed, trying again: [Errno 111] Connection refused\n"


def steps(last: int) -> str:
    return "".join(f"step {step}\n" for step in range(0, last + 1, 5))


def accused(diagnose: Diagnose, *logs: str) -> tuple[str, str | None, tuple[int, ...]] | None:
    named: dict[str, str | bytes] = {f"rank{rank}.log": text for rank, text in enumerate(logs)}
    verdict = diagnose(named).verdict
    return None if verdict is None else (verdict.symptom, verdict.rule, verdict.culprit_ranks)


def test_who_lacks_a_report_is_waited_for(diagnose: Diagnose) -> None:
    assert accused(diagnose, steps(30), steps(25), steps(30)) == ("perf.hang", "HNG401", (1,))


@pytest.mark.parametrize(
    "logs",
    [
        (steps(30), steps(30), steps(30)),
        (steps(30), steps(25)),  # either may be right
        (steps(30), steps(30), steps(25), steps(25)),
        (steps(30), steps(35), steps(30)),  # who went on is not waited for
        (steps(30) + "training finished\n", steps(25), steps(30) + "training finished\n"),
        (steps(30) + "leaving\n", steps(30), steps(30) + "leaving\n"),
        (steps(30) + "world_size=4\n", steps(25), steps(30)),  # one rank's log is not here
    ],
)
def test_nobody_stands_out(diagnose: Diagnose, logs: tuple[str, ...]) -> None:
    assert accused(diagnose, *logs) is None


def test_who_tries_again_for_ever_is_waited_for(diagnose: Diagnose) -> None:
    assert accused(diagnose, steps(30), steps(30), steps(30) + 7 * AGAIN) == ("perf.hang", "HNG400", (2,))
    assert accused(diagnose, steps(35), steps(35), steps(30) + 7 * AGAIN + "step 35\n") is None
    assert accused(diagnose, steps(30), steps(30), steps(30) + 7 * AGAIN + "uploaded\n") is None
