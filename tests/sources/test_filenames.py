"""Ranks told from file names."""

from __future__ import annotations

import pytest

from phalanx.sources.filenames import local_ranks, ranks_of_files


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["rank3.log"], [3]),
        (["logs/rank_12.err"], [12]),
        (["run/rank.3/stdout"], [3]),
        (["none_x1y2/attempt_0/3/stderr.log", "none_x1y2/attempt_0/0/stderr.log"], [3, 0]),
        (["3/stderr.log", "0/stdout.log"], [3, 0]),
        (["worker-0.out", "worker-1.out", "worker-2.out"], [0, 1, 2]),
        (["chief.log", "worker-0.log", "worker-1.log", "ps-0.log"], [0, 1, 2, 3]),
        (["job.0.out", "job.1.out", "job.2.out"], [0, 1, 2]),
        (["slurm-812_0.out", "slurm-812_1.out"], [0, 1]),
        (["out1.txt", "out2.txt", "out3.txt"], [0, 1, 2]),
        (["rank1.log.gz", "rank0.log.zst"], [1, 0]),
    ],
)
def test_rank_from_name(names: list[str], expected: list[int]) -> None:
    found = ranks_of_files(names)
    assert [found.get(name) for name in names] == expected


@pytest.mark.parametrize(
    "names", [["job.log"], ["train-2024.log", "train-2023.log"], ["node0.log", "node1.log"], ["frank.log"]]
)
def test_no_rank_in_the_name(names: list[str]) -> None:
    assert ranks_of_files(names) == {}


def test_kernel_logs_belong_to_no_rank() -> None:
    assert ranks_of_files(["dmesg-gpu012.log", "dmesg-gpu013.log", "kern.log.1"]) == {}


def test_log_folders_of_several_nodes_number_ranks_within_them() -> None:
    names = [f"{node}/none_1/attempt_0/{local}/stderr.log" for node in ("a", "b") for local in range(2)]
    assert local_ranks(names) == frozenset(names)
    assert local_ranks(names[:2]) == frozenset()
    assert local_ranks(["r/attempt_0/3/stderr.log", "r/attempt_1/3/stderr.log"]) == frozenset()
