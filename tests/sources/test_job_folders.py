"""Several jobs in one folder: one report each, and no rank of one is a victim of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths
from phalanx.sources.job_folders import find_jobs

LOST = "RuntimeError: [pair.cc:534] Connection closed by peer [127.0.0.1]:4242\n"


def raised(rank: int, error: str) -> str:
    lines = ("Traceback (most recent call last):", '  File "/job/train.py", line 9, in main', "    step()", error)
    return "".join(f"[rank{rank}]: {line}\n" for line in lines)


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_each_job_has_its_own_report(tmp_path: Path) -> None:
    write(tmp_path, first_DOT_log=raised(0, LOST) + raised(1, "ValueError: a") + raised(2, LOST))
    write(tmp_path, second_DOT_log=raised(0, "KeyError: 'b'") + raised(1, LOST))
    report = diagnose_paths([str(tmp_path)])
    verdicts = {name: one.verdict for name, one in report.jobs}
    assert verdicts.keys() == {"first", "second"}
    assert verdicts["first"] is not None
    assert verdicts["second"] is not None
    assert verdicts["first"].culprit_ranks == (1,)
    assert (verdicts["second"].culprit_ranks, verdicts["second"].victim_ranks) == ((0,), (1,))
    assert [one["job"] for one in report.to_json()["jobs"]] == [name for name, _ in report.jobs]


@pytest.mark.parametrize(
    ("names", "jobs"),
    [
        (("slurm-4711_DOT_out", "slurm-4712_DOT_out", "slurm-4712_DOT_err"), {"job 4711": 1, "job 4712": 2}),
        (("a__rank0_DOT_log", "a__rank1_DOT_log", "b__rank0_DOT_log", "b__rank1_DOT_log"), {"a": 1, "b": 1}),
        (("node0__rank0_DOT_log", "node0__rank1_DOT_log", "node1__rank0_DOT_log", "node1__rank1_DOT_log"), {}),
        (("rank0_DOT_log", "rank1_DOT_log"), {}),
        (("job_DOT_out", "job_DOT_err"), {}),
    ],
)
def test_what_tells_jobs_apart(tmp_path: Path, names: tuple[str, ...], jobs: dict[str, int]) -> None:
    write(tmp_path, **{name: raised(0, LOST) + raised(1, LOST) for name in names})
    assert {name: len(paths) for name, paths in find_jobs(tmp_path).items()} == jobs


def test_nodes_of_one_job_are_one_job(tmp_path: Path) -> None:
    write(tmp_path, a_DOT_log=raised(0, LOST) + raised(1, LOST), b_DOT_log=raised(2, LOST) + raised(3, LOST))
    assert find_jobs(tmp_path) == {}


@pytest.mark.parametrize(
    "names", [("part0.log", "part1.log"), ("train.log", "train.log.1"), ("out_split_00", "out_split_01")]
)
def test_pieces_of_one_log_are_one_job(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).write_text(raised(0, LOST) + raised(1, "ValueError: a"))
    assert find_jobs(tmp_path) == {}
