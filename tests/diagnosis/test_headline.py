"""The first line of a verdict: who did what, where."""

from __future__ import annotations

import pytest

from phalanx.diagnosis.headline import ended_with, name_or_count
from phalanx.model import Basis, Confidence

from ..conftest import Diagnose


def traceback(rank: int, line: int, function: str, source: str, error: str) -> str:
    lines = [
        "Traceback (most recent call last):",
        f'  File "/home/user/train.py", line {line}, in {function}',
        f"    {source}",
        error,
    ]
    return "".join(f"[rank{rank}]: {text}\n" for text in lines)


LOST = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4242"
STEPS = "".join(f"[rank{rank}]: step {step} loss 0.3\n" for step in range(3) for rank in range(3))


def test_an_exception_that_no_rule_knows(diagnose: Diagnose) -> None:
    own = traceback(1, 31, "pad", 'y = [row["labels"] for row in rows]', "KeyError: 'labels'")
    fetch = '[rank1]:   File "/opt/site-packages/torch/utils/data/_utils/fetch.py", line 57, in fetch\n'
    log = STEPS + own.replace("last):\n", f"last):\n{fetch}[rank1]:     return self.collate_fn(data)\n")
    log += "".join(traceback(rank, 40, "main", "loss.backward()", LOST) for rank in (0, 2))
    verdict = diagnose(log).verdict
    assert verdict is not None
    assert verdict.headline == "Rank 1 raised KeyError: 'labels' in your collator (train.py:31)."
    assert verdict.place is not None
    assert (verdict.place.line, verdict.place.text) == (31, 'y = [row["labels"] for row in rows]')
    assert (verdict.culprit_ranks, verdict.culprit_confidence) == ((1,), Confidence.CONFIRMED)
    assert verdict.cause_confidence is Confidence.POSSIBLE
    assert [(fix.pattern, fix.basis) for fix in verdict.shown_fixes] == [("fix-dataset", Basis.EVIDENCE)]
    assert verdict.summary.startswith(verdict.headline)


def test_a_function_is_no_collator_by_its_name(diagnose: Diagnose) -> None:
    verdict = diagnose(STEPS + traceback(1, 31, "collate_results", "x = y[9]", "IndexError: no")).verdict
    assert verdict is not None
    assert verdict.headline == "Rank 1 raised IndexError: no in collate_results (train.py:31)."


def test_all_ranks_alike(diagnose: Diagnose) -> None:
    log = STEPS + "".join(traceback(rank, 9, "main", "raise ValueError(x)", "ValueError: x") for rank in range(3))
    verdict = diagnose(log).verdict
    assert verdict is not None
    assert verdict.headline == "All 3 ranks raised ValueError: x in main (train.py:9)."
    assert (verdict.culprit_ranks, verdict.culprit_confidence) == ((), None)


def test_a_library_that_raised_it_is_named(diagnose: Diagnose) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 9, in main',
        "    fit(model)",
        '  File "/opt/lib/python3.11/site-packages/zork/core.py", line 3, in fit',
        "    self.go()",
        "ZorkError: no",
    ]
    verdict = diagnose("".join(f"{line}\n" for line in lines)).verdict
    assert verdict is not None
    assert verdict.headline == "The script raised ZorkError: no in main (train.py:9)."
    assert verdict.summary.endswith("zork/core.py raised it in fit; your code called it at train.py:9.")
    assert verdict.shown_fixes == ()


def test_a_rule_without_a_headline_lends_its_message(diagnose: Diagnose) -> None:
    log = STEPS + traceback(1, 6, "forward", "self.fc(x)", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x9 and 8x8)")  # fmt: skip
    verdict = diagnose(log).verdict
    assert verdict is not None
    assert verdict.headline == "Rank 1: a matrix product got matrices that do not fit (4x9 and 8x8) (train.py:6)."


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ({2}, "rank 2"),
        ({0, 1}, "ranks 0, 1"),
        (set(range(12)), "12 ranks"),
        (set(range(16)), "all 16 ranks"),
    ],
)
def test_ranks_are_named_or_counted(ranks: set[int], text: str) -> None:
    assert name_or_count(frozenset(ranks), frozenset(range(16))) == text


def test_how_a_process_ended() -> None:
    assert ended_with(-9) == "was killed by SIGKILL"
    assert ended_with(139) == "was killed by SIGSEGV"
    assert ended_with(3) == "exited with status 3"
