"""What goes wrong between driver and nodes: silence, noise, lost lines, values that cannot travel. Real agents."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import phalanx
from phalanx.calls.travel import search_path
from tests.run.jobs import processes_of, wait_for

from .conftest import SOURCE
from .test_calls import start, workers

pytestmark = pytest.mark.timeout(300)


def wait() -> None:
    print("here", flush=True)
    time.sleep(3600)


def agents(folder: Path) -> list[psutil.Process]:
    return [one for one in processes_of(folder) if "phalanx.remote.agent" in one.cmdline()]


def test_a_node_that_stands_still_is_counted_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_JOB", str(tmp_path))
    call = workers(2, wait).on("local", nodes=2).submit()
    assert wait_for(lambda: call.done() or len(list(call.logs())) == 2), call.status()
    call._driver.job = replace(call._driver.job, silent_for=3.0)
    agents(tmp_path)[1].suspend()
    with pytest.raises(phalanx.JobFailed, match="vanished") as caught:
        call.results(timeout=120)
    told = json.loads((call.bundle / "attempt0" / f"rank{caught.value.rank}" / "exit.json").read_text())
    assert "vanished: no word for 3 s" in told["why"]["text"]
    assert wait_for(lambda: processes_of(tmp_path) == [], 60), processes_of(tmp_path)


def test_a_driver_that_was_stopped_itself_does_not_blame_its_nodes(tmp_path: Path) -> None:
    """As when a laptop is closed for a while: nobody could be heard."""
    script = (
        "import dataclasses, os, phalanx, time\n"
        "@phalanx.function(workers=2, framework='none')\n"
        "def task():\n    print('here', flush=True)\n    time.sleep(14)\n    return 5\n"
        "call = task.submit()\n"
        "while len(list(call.logs())) < 2: time.sleep(0.1)\n"
        "call._driver.job = dataclasses.replace(call._driver.job, silent_for=4.0)\n"
        "print('now', flush=True)\n"
        "print(call.results())\n"
    )
    driver = start(tmp_path, "submit", script)
    out = tmp_path / "out"
    assert wait_for(lambda: b"now" in out.read_bytes() or driver.poll() is not None), out.read_text()
    driver.send_signal(signal.SIGSTOP)
    time.sleep(7)
    driver.send_signal(signal.SIGCONT)
    assert driver.wait(120) == 0, out.read_text()
    assert "[5, 5]" in out.read_text()


def test_a_second_cancel_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_JOB", str(tmp_path))

    def stubborn() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        wait()

    call = workers(2, stubborn).options(grace=100).submit()
    assert wait_for(lambda: call.done() or len(list(call.logs())) == 2), call.status()
    call.cancel()
    assert not call.wait(2)
    began = time.monotonic()
    call._driver.cancel(force=True)
    assert call.wait(60)
    assert time.monotonic() - began < 60
    assert wait_for(lambda: processes_of(tmp_path) == [], 30)


def test_a_shell_that_greets_does_not_disturb(ssh_config: Path, tmp_path: Path) -> None:
    noisy = tmp_path / "noisy-ssh"
    noisy.write_text('#!/bin/sh\necho "Welcome to this machine"\nexec ssh "$@"\n')
    noisy.chmod(0o700)
    task = workers(1, lambda: 7, env={"PYTHONPATH": SOURCE}).on("ssh://alpha", config=ssh_config, ssh=noisy)
    assert task() == [7]
    noisy.write_text('#!/bin/sh\necho "This account is closed."\nexit 1\n')
    with pytest.raises(phalanx.CannotStart, match=r"no agent speaks there; .*This account is closed"):
        task()


def test_lines_of_every_attempt_are_followed() -> None:
    def task() -> None:
        for number in range(200):
            print("attempt", phalanx.attempt(), "line", number)
        if phalanx.attempt() == 0:
            raise SystemExit(3)

    call = workers(1, task, retries=1).submit()
    lines = list(call.logs(rank=0, follow=True))
    assert call.results() == [None]
    assert lines == [f"attempt {attempt} line {number}" for attempt in (0, 1) for number in range(200)]


def test_when_it_cannot_be_tried_again_the_first_failure_is_told(tmp_path: Path) -> None:
    """The second attempt finds no interpreter for its agent."""

    def task() -> None:
        os.kill(os.getppid(), 9)
        time.sleep(3600)

    gone = tmp_path / "ssh"
    gone.write_text(f'#!/bin/sh\nshift $(($# - 1))\nrm {gone}\nexec sh -c "$1"\n')  # a host that is there once
    gone.chmod(0o700)
    call = workers(1, task, retries=1, env={"PYTHONPATH": SOURCE}).on("ssh://alpha", ssh=gone).submit()
    with pytest.raises(phalanx.JobFailed, match="vanished") as caught:
        call.results()
    assert caught.value.host == "alpha"
    assert call.status().attempt == 0


def test_results_that_cannot_travel_or_be_loaded_are_told() -> None:
    with pytest.raises(phalanx.JobFailed, match="what the function returned cannot be sent back"):
        workers(1, threading.Lock)()

    def trap() -> object:
        class Trap:
            def __reduce__(self) -> tuple[object, ...]:
                return int, ("not a number",)

        return Trap()

    call = workers(1, trap).submit()
    for _ in range(2):  # also when it is asked again
        with pytest.raises(phalanx.PhalanxError, match=r"rank 0 returned what cannot be loaded here: ValueError"):
            call.results()


def test_fewer_workers_are_for_another_attempt() -> None:
    with pytest.raises(phalanx.CannotStart, match=r"workers=\(2, 4\) is for trying again"):
        workers((2, 4), wait).submit()  # type: ignore[arg-type]


def test_the_callers_own_packages_are_not_lent_to_other_interpreters() -> None:
    found = search_path()
    assert SOURCE in found
    assert not any("site-packages" in entry or entry.endswith("lib-dynload") for entry in found)


def test_lines_of_a_key_are_secrets_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "-----BEGIN-----\nabcdefgh12345678\n-----END-----")

    def task() -> None:
        print(os.environ["MY_KEY"].splitlines()[1])

    call = workers(1, task, secrets=["MY_KEY"]).submit()
    call.results()
    assert list(call.logs(0)) == ["[redacted]"]
