"""Totals of all ranks over counts of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.verification.checks.count_not_reduced import check
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from tests.verification.made import call
from tests.verification.passes import job, loader, one_pass

LOOP = "def evaluate():\n    for x, y in loader:\n        correct += hits(x, y)\n        total += len(y)\n"


def evaluated(folder: Path, *lines: str) -> list[Found]:
    """Line 5 reduces."""
    (folder / "train.py").write_text(LOOP + "".join(f"    {line}\n" for line in lines))
    ranks = [
        [loader(), *one_pass(range(16 * r, 16 * r + 16), trains=False, calls=[call("", n=1, line="train.py:5")])]
        for r in (0, 1)
    ]
    made = job(*ranks)
    return list(check(Evidence(made.ranks, made.size, folder)))


def test_a_count_that_stays_the_ranks_own(tmp_path: Path) -> None:
    (found,) = evaluated(tmp_path, "dist.all_reduce(correct)", "return correct.item() / total")
    assert (found.cause, found.line) == ("metric-count-not-reduced", "train.py:6")
    assert "16 of 32 samples: the metric is 2 × too large" in found.headline


def test_means_that_are_summed(tmp_path: Path) -> None:
    (found,) = evaluated(tmp_path, "mean = torch.tensor(correct / total); dist.all_reduce(mean)", "print(mean)")
    assert (found.cause, found.line) == ("metric-summed-not-averaged", "train.py:5")
    assert not evaluated(tmp_path, "mean = torch.tensor(correct / total); dist.all_reduce(mean)", "print(mean / world)")
    for own in ("correct", "correct / len(dataset)", "correct / total / world_size"):
        assert not evaluated(tmp_path, f"mean = torch.tensor({own}); dist.all_reduce(mean)", "print(mean)")


@pytest.mark.parametrize(
    "lines",
    [
        ("dist.all_reduce(correct); dist.all_reduce(total)", "return correct / total"),
        ("dist.all_reduce(correct)", "return correct / len(dataset)"),
        ("dist.all_reduce(correct)", "return correct / total / world_size"),
        ("dist.all_reduce(correct)", "total = total * dist.get_world_size()", "return correct / total"),
        ("pass", "acc = correct / total", "dist.all_reduce(acc)", "acc /= world_size"),
    ],
)
def test_counts_of_all_ranks(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert not evaluated(tmp_path, *lines)
