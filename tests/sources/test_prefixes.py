"""What stands before every line is taken off, unless it tells who speaks or is the beginning of what is said."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from phalanx.sources.dialects import sniff
from phalanx.sources.prefixes import prefix_of

LOG = [
    "3 workers",
    "step 1 loss 2.31",
    "step 2 loss 2.11",
    "Traceback (most recent call last):",
    '  File "/home/user/train.py", line 9, in <module>',
    '    rows = table["x"] < 3',
    "KeyError: 'x'",
]


def taken_off(lines: list[str]) -> list[str] | None:
    unwrap = prefix_of([line.encode() for line in lines])
    return None if unwrap is None else [unwrap(line.encode()).decode() for line in lines]


@pytest.mark.parametrize(
    "prefix",
    [
        lambda _: "INFO:root:",
        lambda n: ("INFO", "ERROR", "WARNING")[n % 3] + ":root:",
        lambda _: "| ",
        lambda _: "trainer_1  | ",
        lambda _: "[train : step-run] ",
        lambda _: "node7.cluster.local: ",
        lambda _: "10.0.0.5: ",
        lambda _: "0: ",
        lambda n: f"10:00:{n:02d} train.1 | ",
        lambda n: f"[{n * 3.5:9.3f}] ",
        lambda n: f"24/05/01 10:00:{n:02d} INFO TorchDistributor: ",
        lambda n: f"Wed May  1 10:00:{n:02d} 2024 ",
        lambda n: f"[10:00:{n:02d} ] :\t [Step 1/1] ",
        lambda _: "(train, pid=4711) ",
    ],
)
def test_a_prefix_that_says_nothing_is_taken_off(prefix: Callable[[int], str]) -> None:
    assert taken_off([prefix(number) + line for number, line in enumerate(LOG)]) == LOG


@pytest.mark.parametrize(
    "prefix",
    ["I 2026-11-17T05:00:{:02d}.0Z workerpool0-0 ", "2026-11-17 05:00:{:02d},0 - train - INFO - ", "[2026-11-17 05:00:{:02d},0][train][INFO] - "],
)  # fmt: skip
def test_a_date_stays(prefix: str) -> None:
    made = taken_off([prefix.format(number) + line for number, line in enumerate(LOG)])
    assert made == [f"2026-11-17T05:00:{number:02d}.0Z {line}" for number, line in enumerate(LOG)]


@pytest.mark.parametrize(
    ("prefix", "rank", "host"),
    [
        ("(worker{0}, rank={0}, pid=471{0}) ", 1, None),
        ("[node{0}] out: ", None, "node1"),
        ("10.0.0.{0}\t", None, "host-10.0.0.1"),
        ("May 01 10:00:01 node{0} train[81{0}]: ", None, "node1"),
        ("job-worker-{0} pytorch ", 1, "job-worker-1"),
    ],
)
def test_who_speaks_stays_known(prefix: str, rank: int | None, host: str | None) -> None:
    made = taken_off([prefix.format(number) + line for line in LOG for number in range(2)])
    assert made is not None
    speaker, text = sniff(made, None).read(made[-1])
    assert (speaker.rank, speaker.host, text) == (rank, host, LOG[-1])


@pytest.mark.parametrize(
    "lines",
    [
        LOG,
        [f"[rank{number % 2}]: {line}" for line in LOG for number in range(2)],
        [f"[rank0]: {line}" for line in LOG],
        [f"{number % 2}: {line}" for line in LOG for number in range(2)],
        [f"[1,{number % 2}]<stderr>:{line}" for line in LOG for number in range(2)],
        [f"step {number} loss 2.{number}" for number in range(20)],
        [f"replicas 2 step {number} loss 2.{number}" for number in range(20)],
        [f"[2 gpus] step {number} loss 2.{number}" for number in range(20)],
        [f"2026-11-17 05:00:{number:02d} rank {number % 2} step {number} loss 2.1" for number in range(20)],
        [f"node0:812:901 [0] NCCL INFO {line}" for line in LOG],
        [f"slurmstepd: error: {line}" for line in LOG],
        [f"2026-11-17 05:00:01.5: I tensorflow/core/allocator.cc:10] {line}" for line in LOG],
        ["Traceback (most recent call last):", *(f'  File "a.py", line {n}, in f' for n in range(9)), "KeyError: 3"],
    ],
)
def test_what_means_something_is_left(lines: list[str]) -> None:
    assert taken_off(lines) is None


def test_a_prefix_before_nothing_but_steps_is_taken_off_small_files() -> None:
    lines = [f"INFO:root:step {number} loss 2.{number}".encode() for number in range(20)]
    unwrap = prefix_of(lines)
    assert unwrap is not None
    assert unwrap(lines[3]) == b"step 3 loss 2.3"
    assert prefix_of(lines, is_small=False) is None


def test_lines_without_the_prefix_are_left_as_they_are() -> None:
    lines = [f"| {line}" for line in LOG * 4]
    made = taken_off([*lines, "srun: error: node1: task 0: Exited with exit code 1"])
    assert made == [*LOG * 4, "srun: error: node1: task 0: Exited with exit code 1"]


@pytest.mark.parametrize("unit", ["1", "a1", "a-", "[ 1", "INFO ", "May 1 ", "1:", " "])
def test_hostile_lines_take_no_time(unit: str) -> None:
    lines = [unit * 5000 + f"x{number}" for number in range(60)] + ["1" * 300 + ': File "']
    began = time.monotonic()
    unwrap = prefix_of([line.encode() for line in lines])
    if unwrap is not None:
        unwrap((unit * 500_000).encode())
    assert time.monotonic() - began < 5
