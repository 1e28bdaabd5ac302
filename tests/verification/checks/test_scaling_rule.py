"""Learning rates scaled with a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.verification.checks.scaling_rule import check
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from tests.verification.made import Job
from tests.verification.passes import loader

LOADER = "loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)"


def ruled(folder: Path, *lines: str, loads: str = LOADER) -> list[Found]:
    (folder / "train.py").write_text("\n".join((loads, *lines)) + "\n")
    made = Job(more=lambda rank: [loader(batch_size=32)]).evidence
    return list(check(Evidence(made.ranks, made.size, folder)))


def test_the_batch_of_one_rank(tmp_path: Path) -> None:
    (found,) = ruled(tmp_path, "lr = args.base_lr * args.batch_size / 256")
    assert (found.cause, found.line) == ("learning-rate-not-scaled", "train.py:2")
    assert "32 samples of one rank, not the 64 of all 2" in found.headline
    assert ruled(tmp_path, "opt = SGD(model.parameters(), lr=0.1 * (args.batch_size / 256) ** 0.5)")


@pytest.mark.parametrize(
    "lines",
    [
        ("lr = args.base_lr * args.batch_size * world_size / 256",),
        ("args.batch_size = args.batch_size // world_size", "lr = 0.1 * args.batch_size / 256"),
        ("lr = 0.1 * args.batch_size / 256", "lr = lr * dist.get_world_size()"),
        ("lr = 0.1 * args.global_batch / 256",),
        ("lr = 0.1",),
        ("loss = total / args.batch_size", "lr = 0.1 / 2"),
    ],
)
def test_rules_that_count_the_ranks_and_rates_without_a_rule(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert not ruled(tmp_path, *lines)
