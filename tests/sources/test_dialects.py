"""Ranks told apart by the prefixes of launchers and libraries."""

from __future__ import annotations

import pytest

from phalanx.sources.dialects import Dialect, sniff


@pytest.mark.parametrize(
    ("line", "rank", "rest"),
    [
        ("[rank3]: Traceback (most recent call last):", 3, "Traceback (most recent call last):"),
        (
            "[rank12]:[E1115 10:00:00.000 ProcessGroupNCCL.cpp:616] boom",
            12,
            "[E1115 10:00:00.000 ProcessGroupNCCL.cpp:616] boom",
        ),
        ("Loading:   0%|          | 0/5 [00:00<?, ?it/s][rank3]: Traceback", 3, "Traceback"),
        ("[default2]:step 10", 2, "step 10"),
        ("[1,3]<stderr>:Traceback", 3, "Traceback"),
        ("[1,3]<stdout>: ok", 3, "ok"),
        ("[2]<stderr>:Terminated", 2, "Terminated"),
        ("[prterun-node0-812@1,3]<stderr>: x", 3, "x"),
        ("2024-01-02 10:00:00,123 [rank 2] INFO step 1", 2, "2024-01-02 10:00:00,123 [rank 2] INFO step 1"),
        ("[Rank 7] Watchdog caught", 7, "[Rank 7] Watchdog caught"),
        ("rank 4: loading data", 4, "rank 4: loading data"),
        ("rank 4 step 10 loss 0.1", 4, "rank 4 step 10 loss 0.1"),
        ("[worker 2] epoch 0 loss 0.58", 2, "[worker 2] epoch 0 loss 0.58"),
        ("worker 1 step 10 loss 0.1", 1, "worker 1 step 10 loss 0.1"),
        ("process 1/2 step 0 loss 0.1", 1, "process 1/2 step 0 loss 0.1"),
        ("INFO:root:rank 2: ready", 2, "INFO:root:rank 2: ready"),
        ("[INFO] rank 2 epoch 4", 2, "[INFO] rank 2 epoch 4"),
        ("WARNING:root:rank 0 died at step 4", None, "WARNING:root:rank 0 died at step 4"),
        ("INFO rank 1 lost the connection to rank 0", None, "INFO rank 1 lost the connection to rank 0"),
        ("4 workers step together", None, "4 workers step together"),
        ("[pod/job-worker-3/pytorch] hello", 3, "hello"),
        ("node0:812:901 [5] NCCL INFO Channel 00", 5, "node0:812:901 [5] NCCL INFO Channel 00"),
        (
            "Rank 0 failed to pass monitoredBarrier in 30000 ms",
            None,
            "Rank 0 failed to pass monitoredBarrier in 30000 ms",
        ),
        ("2019-07-13T01:09:12.881Z: [1,1]<stderr>:  File x", 1, " File x"),
        ("[1,mpirank:9,algo-2]<stdout>:Traceback", 9, "Traceback"),
        ("> [1,mpirank:9,algo-2]<stdout>:Traceback", 9, "Traceback"),
        ("`[1,0]<stderr>:Traceback`", 0, "Traceback`"),
        ("Thu Jun 10 16:02:20 2021[3]<stderr>:Traceback", 3, "Traceback"),
        ("2021-07-26T14:09:27.842050038Z stderr F   indented", None, "  indented"),
        ("2021-07-26T14:09:27.84205038Z\t  indented", None, "  indented"),
        ("2024-01-02 10:00:00 a program's own time", None, "2024-01-02 10:00:00 a program's own time"),
        ('{"ts": 1.5, "rank": 2, "step": 9}', 2, '{"ts": 1.5, "rank": 2, "step": 9}'),
        ("INFO:engine:rank=1 device=cpu step=10", 1, "INFO:engine:rank=1 device=cpu step=10"),
        ("waiting for rank=1 to answer", None, "waiting for rank=1 to answer"),
        ("[epoch 0] rank 1: accuracy 0.5", 1, "[epoch 0] rank 1: accuracy 0.5"),
        ("3: not a label by itself", None, "3: not a label by itself"),
        ("connect to rank 3 failed", None, "connect to rank 3 failed"),
    ],
)
def test_speaker_of_a_single_line(line: str, rank: int | None, rest: str) -> None:
    speaker, text = Dialect().read(line)
    assert (speaker.rank, text) == (rank, rest)


def test_srun_labels_are_believed_only_if_most_lines_have_them() -> None:
    labelled = [f"{number % 4}: step {number}" for number in range(40)]
    assert sniff(labelled, None).read("3: boom")[0].rank == 3
    mixed = ["plain words"] * 40 + labelled[:10]
    assert sniff(mixed, None).read("3: boom")[0].rank is None


def test_numbered_listings_are_not_labels() -> None:
    listing = [f"{number}: import torch" for number in range(60)]
    assert sniff(listing, None).read("3: boom")[0].rank is None


def test_prefixes_nest() -> None:
    lines = [f"{number % 2}: [rank{number % 2}]: x" for number in range(20)]
    assert sniff(lines, None).read("1: [rank1]: boom")[1] == "boom"


def test_ray_workers_get_their_rank_from_what_is_known_of_their_process() -> None:
    dialect = Dialect()
    line = "(RayTrainWorker pid=812, ip=10.0.0.5) boom"
    speaker, text = dialect.read(line)
    assert (speaker.rank, speaker.pid, speaker.host, text) == (None, 812, "10.0.0.5", "boom")
    dialect.ranks_by_pid[812] = 3
    assert dialect.read(line)[0].rank == 3


def test_workers_follow_the_master_of_a_pytorch_job() -> None:
    lines = ["[pod/job-master-0/pytorch] a", "[pod/job-worker-0/pytorch] b"] * 3
    dialect = sniff(lines, None)
    assert dialect.read(lines[0])[0].rank == 0
    assert dialect.read(lines[1])[0].rank == 1


def test_the_files_own_rank_holds_where_a_line_names_none() -> None:
    assert sniff(["a", "b"], 2).read("plain")[0].rank == 2


@pytest.mark.parametrize("form", ["[r{}] step {}", "r{} it {}", "{} | step {}", "({}) step {}", "10:20:30 R{} iter={}"])
def test_scripts_own_prefixes(form: str) -> None:
    lines = [form.format(number % 3, number) for number in range(30)]
    assert sniff(lines, None).read(form.format(2, 99))[0].rank == 2


def test_own_prefixes_that_do_not_count_like_ranks() -> None:
    lines = [f"w{number % 3 + 4} loss 0.1" for number in range(30)]
    assert sniff(lines, None).read("w5 loss 0.2")[0].rank is None
    table = [f"{number} | loss 0.1" for number in range(30)]
    assert sniff(table, None).read("2 | loss 0.2")[0].rank is None


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-17 09:10:00.640 | INFO     | __main__:main:15 - rank 3 epoch 0 loss 0.1801",
        "2026-11-17 09:10:00,640 - trainer - INFO - rank 3 step 4 loss 1.0",
        "2026-11-17 09:10:00,640 INFO train.loop: Rank 3 step 3",
        "[2026-11-17 09:10:00,640] [INFO] [engine.py:12] rank 3 step 5",
    ],
)
def test_the_rank_behind_the_head_of_a_logger(line: str) -> None:
    assert Dialect().read(line)[0].rank == 3


@pytest.mark.parametrize("form", ["rank{}: {}", "[rank {}] {}", "P{}: {}", "GPU{}: {}"])
def test_more_of_scripts_own_prefixes(form: str) -> None:
    lines = [form.format(number % 3, "loading") for number in range(30)]
    assert sniff(lines, None).read(form.format(2, "  File x"))[0].rank == 2


def test_containers_that_count_from_one() -> None:
    lines = [f"trainer_{number % 3 + 1}  | words" for number in range(30)]
    assert sniff(lines, None).read("trainer_3  | words")[0].rank == 2
    gap = [f"trainer_{number}  | words" for number in (1, 2, 4)] * 9
    assert sniff(gap, None).read("trainer_4  | words")[0].rank is None


def test_one_container_may_hold_all_ranks() -> None:
    dialect = sniff(["trainer_1  | words"] * 9, None)
    speaker, text = dialect.read("trainer_1  |   words")
    assert (speaker.rank, speaker.host, text) == (None, "trainer_1", "  words")
    assert dialect.read("trainer_1  | [rank3]: boom")[0].rank == 3
