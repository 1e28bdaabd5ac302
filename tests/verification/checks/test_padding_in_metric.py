"""Samples that a sampler deals twice so that shares are equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phalanx.verification.checks.padding_in_metric import check
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from tests.verification.made import call
from tests.verification.passes import job, loader, one_pass


def evaluated(shares: list[list[int]], length: int, calls: list[list[Any]]) -> Evidence:
    ranks = [
        [loader(1, num_replicas=2, rank=rank, length=length), *one_pass(ids, 1, trains=False, calls=calls)]
        for rank, ids in enumerate(shares)
    ]
    return job(*ranks)


SUMMED = [call("", "allreduce", n=2)]


def test_a_sample_that_counts_twice() -> None:
    (found,) = check(evaluated([[0, 2, 4, 6, 8], [1, 3, 5, 7, 0]], 9, SUMMED))
    assert "1 of 9 evaluation samples count twice in the metric (#0)" in found.headline


def test_healthy_jobs_give_nothing() -> None:
    assert not list(check(evaluated([[0, 2, 4, 6], [1, 3, 5, 7]], 8, SUMMED)))
    ddps = [call("", "allreduce", n=40, red="")]
    assert not list(check(evaluated([[0, 2, 4, 6, 8], [1, 3, 5, 7, 0]], 9, ddps))), "the next step's gradients"
    gathered = [call("", "allgather", n=8)]
    assert not list(check(evaluated([[0, 2, 4, 6, 8], [1, 3, 5, 7, 0]], 9, gathered))), "may be cut afterwards"


def test_outputs_that_are_gathered_and_never_cut(tmp_path: Path) -> None:
    def gathered(text: str) -> list[Found]:
        (tmp_path / "train.py").write_text(f"dist.all_gather(out, errors)\n{text}\n")
        made = evaluated([[0, 2, 4, 6, 8], [1, 3, 5, 7, 0]], 9, [call("", "allgather", n=5, line="train.py:1")])
        return list(check(Evidence(made.ranks, made.size, tmp_path)))

    (found,) = gathered("print(torch.cat(out).mean())")
    assert found.cause == "padding-in-metric"
    assert "joined at train.py:1" in found.headline
    assert not gathered("print(torch.cat(out)[:9].mean())")
    assert gathered("x = data[:, 0]\nprint(torch.cat(out).mean())"), "a column is no cut"


def test_a_cut_counts_only_where_the_gathered_can_reach(tmp_path: Path) -> None:
    def gathered(before: str, behind: str) -> list[Found]:
        text = (
            f"{before}\ndef collect(errors):\n    dist.all_gather(out, errors)\n    return torch.cat(out)\n{behind}\n"
        )
        (tmp_path / "train.py").write_text(text)
        made = evaluated([[0, 2, 4, 6, 8], [1, 3, 5, 7, 0]], 9, [call("", "allgather", n=5, line="train.py:3")])
        return list(check(Evidence(made.ranks, made.size, tmp_path)))

    assert gathered("train = data[:100]", "print(collect(errors).mean())")
    assert not gathered("", "found = collect(errors)\nprint(found[:9].mean())")
