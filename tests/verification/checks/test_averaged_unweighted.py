"""Means of unequal shares."""

from __future__ import annotations

from pathlib import Path

from phalanx.verification.checks.averaged_unweighted import check
from phalanx.verification.evidence import Evidence
from tests.verification.made import call
from tests.verification.passes import job, loader, one_pass


def evaluated(folder: Path, text: str, *sizes: int, n: int = 1) -> Evidence:
    (folder / "train.py").write_text(f"world = dist.get_world_size()\ndist.all_reduce(val)\n{text}\n")
    ranks = [
        [
            loader(),
            *one_pass(range(100 * rank, 100 * rank + size), trains=False, calls=[call("", n=n, line="train.py:2")]),
        ]
        for rank, size in enumerate(sizes)
    ]
    made = job(*ranks)
    return Evidence(made.ranks, made.size, folder)


def test_a_mean_over_ranks_of_means_over_shares(tmp_path: Path) -> None:
    (found,) = check(evaluated(tmp_path, "val = val / world", 32, 8))
    assert (found.cause, found.line) == ("metric-averaged-unweighted", "train.py:3")
    assert "32 on rank 0, 8 on rank 1" in found.headline


def test_equal_shares_sums_and_counts(tmp_path: Path) -> None:
    assert not list(check(evaluated(tmp_path, "val = val / world", 32, 32)))
    assert not list(check(evaluated(tmp_path, "val = val / world", 32, 31)))
    assert not list(check(evaluated(tmp_path, "val = val / len(dataset)", 32, 8)))
    assert not list(check(evaluated(tmp_path, "val = val[0] / val[1]", 32, 8, n=2)))
