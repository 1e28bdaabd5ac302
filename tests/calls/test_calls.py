"""Calls under way: results, output, states, cancelling, retries, limits, secrets. Real processes; no framework needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import phalanx
from tests.run.jobs import processes_of, wait_for

from . import jobs
from .conftest import SOURCE

pytestmark = pytest.mark.timeout(300)


def workers(count: int, plain: object, **settings: object) -> phalanx.Function[..., object]:
    return phalanx.function(workers=count, framework="none", grace=2, **settings)(plain)  # type: ignore[call-overload,no-any-return]


def test_results_of_all_ranks_in_order_typed_as_returned() -> None:
    def task(base: int, *, power: int) -> tuple[int, bytes, set[int]]:
        rank = int(os.environ["RANK"])
        return base + rank**power, b"\0" * rank, {rank}

    found = workers(3, task)(10, power=2)
    assert found == [(10, b"", {0}), (11, b"\0", {1}), (14, b"\0\0", {2})]
    assert list(Path("phalanx-runs").glob("*/job")) == []  # what the call sent and got is gone, the evidence stays


def test_closures_and_lambdas_travel() -> None:
    secret = {"a": [1, 2]}
    assert workers(2, lambda extra: (secret["a"], extra))({"b": 3}) == [([1, 2], {"b": 3})] * 2


def test_what_cannot_travel_is_said_before_anything_starts() -> None:
    with pytest.raises(phalanx.CannotStart, match="make them inside the function"):
        workers(1, lambda: None).submit(threading.Lock())
    assert not list(Path("phalanx-runs").glob("*"))


def test_no_line_is_lost_and_the_order_of_a_rank_is_kept() -> None:
    call = workers(4, jobs.shout).submit(3000)
    followed = list(call.logs(rank=2, follow=True))
    assert call.results() == [3000] * 4
    for rank in range(4):
        lines = list(call.logs(rank))
        assert len(lines) == 3000
        for stream in (0, 1):  # each stream keeps its order; between the two there is none
            numbers = [int(line.split()[-1]) for line in lines if int(line.split()[-1]) % 2 == stream]
            assert numbers == sorted(numbers)
    assert sorted(followed) == sorted(call.logs(2))
    assert sum(line.startswith("[3] rank 3 line") for line in call.logs()) == 3000
    with pytest.raises(ValueError, match="ranks 0 to 3"):
        next(call.logs(4))


def test_states_and_cancel_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_JOB", str(tmp_path))

    def wait() -> None:
        print("here", flush=True)
        time.sleep(3600)

    call = workers(2, wait).submit()
    assert wait_for(lambda: call.status().state == "running" and len(list(call.logs())) == 2)
    assert not call.done()
    with pytest.raises(phalanx.NotFinished):
        call.results(timeout=0.1)
    call.cancel(wait=True)
    assert call.status().state == "cancelled"
    with pytest.raises(phalanx.CallCancelled):
        call.results()
    assert processes_of(tmp_path) == []


def test_retries_start_all_ranks_again(tmp_path: Path) -> None:
    def task(folder: str) -> int:
        rank = os.environ["RANK"]
        mark = Path(folder, f"tried{rank}")
        if rank == "1" and not mark.exists():
            mark.touch()
            sys.exit(7)
        return 5

    call = workers(2, task, retries=1).submit(str(tmp_path))
    assert call.results() == [5, 5]
    assert call.status().attempt == 1
    assert (call.bundle / "attempt0" / "rank1" / "exit.json").exists()


def test_a_retry_goes_on_from_the_last_checkpoint(tmp_path: Path) -> None:
    def task() -> tuple[int, int, str | None]:
        folder, last = phalanx.checkpoints(), phalanx.last_checkpoint()
        assert folder is not None
        first = int(last.name.removeprefix("step")) + 1 if last else 0
        for step in range(first, 6):
            if os.environ["RANK"] == "0":
                (folder / ".half").write_text("not yet")
                (folder / f"step{step}").write_text("whole")
            if step == 3 and phalanx.attempt() == 0:
                sys.exit(5)
        return first, phalanx.attempt(), last.name if last else None

    (tmp_path / "kept").mkdir()
    call = workers(1, task, retries=2, checkpoints="kept").submit()
    assert call.results() == [(4, 1, "step3")]


def test_with_fewer_workers_after_a_node_was_lost() -> None:
    def task() -> tuple[str, str]:
        if os.environ["RANK"] == "3" and phalanx.attempt() == 0:
            os.kill(os.getppid(), 9)
        time.sleep(1)
        return os.environ["RANK"], os.environ["WORLD_SIZE"]

    call = workers((2, 4), task, retries=1).on("local", nodes=2).submit()  # type: ignore[arg-type]
    assert call.results() == [("0", "2"), ("1", "2")]
    strict = workers(4, task, retries=1).on("local", nodes=2).submit()
    assert strict.results() == [(str(rank), "4") for rank in range(4)]


def test_a_rank_that_leaves_without_returning_is_named() -> None:
    def task() -> None:
        if os.environ["RANK"] == "1":
            os._exit(0)

    with pytest.raises(phalanx.JobFailed, match="before the function returned") as caught:
        workers(2, task)()
    assert caught.value.rank == 1


def test_an_exception_that_cannot_travel_still_names_its_rank() -> None:
    class OddError(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__("odd")

    def task() -> None:
        if os.environ["RANK"] == "1":
            raise OddError(1, 2)
        time.sleep(30)

    with pytest.raises(phalanx.JobFailed) as caught:
        workers(2, task)()
    assert caught.value.rank == 1
    assert caught.value.__cause__ is not None


def test_a_time_limit() -> None:
    with pytest.raises(phalanx.JobTimedOut, match=r"time limit of 1\.5 s"):
        workers(1, lambda: time.sleep(3600), timeout="1.5s")()


def test_secrets_reach_the_ranks_and_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_LITTLE_VALUE", "correct-horse-battery")

    def task() -> int:
        value = os.environ["MY_LITTLE_VALUE"]
        print("value is", value)
        return len(value)

    call = workers(2, task, secrets=["MY_LITTLE_VALUE"]).submit()
    assert call.results() == [21, 21]
    assert list(call.logs(0)) == ["value is [redacted]"]
    kept = [path for path in call.bundle.rglob("*") if path.is_file()]
    assert kept
    assert not any(b"correct-horse-battery" in path.read_bytes() for path in kept)
    monkeypatch.delenv("MY_LITTLE_VALUE")
    with pytest.raises(phalanx.CannotStart, match="MY_LITTLE_VALUE is not set here"):
        workers(1, task, secrets=["MY_LITTLE_VALUE"])()


def test_variables_and_names_with_odd_letters_are_inert(tmp_path: Path) -> None:
    odd = f"x; touch {tmp_path}/pwned $(touch {tmp_path}/pwned) `id` 'q' \"r\""
    task = workers(1, jobs.place, env={"ODD": odd})
    assert task("ODD") == [{"ODD": odd}]
    assert not (tmp_path / "pwned").exists()


def test_devices_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    task = workers(2, jobs.place, gpus=2)
    assert task("CUDA_VISIBLE_DEVICES") == [{"CUDA_VISIBLE_DEVICES": "4,5"}, {"CUDA_VISIBLE_DEVICES": "6,7"}]
    with pytest.raises(phalanx.CannotStart, match="6 devices, but this node has 4"):
        task.options(gpus=3)("CUDA_VISIBLE_DEVICES")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"workers": 0}, "workers=0"),
        ({"workers": (4, 2)}, "fewest and the most"),
        ({"timeout": "soon"}, '"90s"'),
        ({"framework": "tenserflow"}, "tensorflow, torch"),
        ({"env": {"A B": "1"}}, "no name of a variable"),
        ({"secrets": "TOKEN"}, "list of names"),
        ({"secrets": ["hunter 2"]}, "never its value"),
        ({"retries": -1}, "retries=-1"),
        ({"on_stall": "panic"}, "report, abort, ignore"),
        ({"wokers": 3}, "wokers: no such setting"),
    ],
)
def test_mistakes_are_told_where_they_are_made(settings: dict[str, object], words: str) -> None:
    with pytest.raises(phalanx.CannotStart, match=words):
        phalanx.function(**settings)  # type: ignore[call-overload]


def test_engines_refuse_at_once_what_they_do_not_know() -> None:
    with pytest.raises(phalanx.CannotStart, match="no backend is called slurmm"):
        jobs.train.on("slurmm")
    with pytest.raises(phalanx.CannotStart, match="does not know partition"):
        jobs.train.on("local", partition="gpu")
    with pytest.raises(phalanx.CannotStart, match="cannot be spread"):
        jobs.train.on("local", nodes=9).submit("ok")
    assert "ranks 2 to 3" in jobs.train.on("ssh://a,b").plan("ok")


WAITS = """\
import os, phalanx, sys, time
@phalanx.function(workers=2, framework="none", grace=2)
def task():
    print("here", flush=True)
    time.sleep(3600)
if sys.argv[1] == "submit":
    call = task.submit()
    while len(list(call.logs())) < 2:
        time.sleep(0.1)
    print("leaving", flush=True)
else:
    task()
"""


def start(folder: Path, how: str, script: str = WAITS) -> subprocess.Popen[bytes]:
    (folder / "waits.py").write_text(script)
    return subprocess.Popen(
        [sys.executable, "waits.py", how],
        cwd=folder,
        stdout=(folder / "out").open("wb"),
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": SOURCE, "TEST_JOB": str(folder)},
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whoever_ends_the_caller_ends_the_job(tmp_path: Path, number: int) -> None:
    caller = start(tmp_path, "call")
    assert wait_for(lambda: b"here" in (tmp_path / "out").read_bytes()), (tmp_path / "out").read_text()
    caller.send_signal(number)
    caller.wait(120)
    assert wait_for(lambda: processes_of(tmp_path) == [], 60), processes_of(tmp_path)
    if number == signal.SIGINT:
        assert b"KeyboardInterrupt" in (tmp_path / "out").read_bytes()


def test_a_call_does_not_outlive_its_caller(tmp_path: Path) -> None:
    caller = start(tmp_path, "submit")
    assert caller.wait(120) == 0, (tmp_path / "out").read_text()
    assert processes_of(tmp_path) == []
