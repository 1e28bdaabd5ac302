"""What is written to a rank's standard error stays there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from phalanx.embedded.local_ranks import stderr_of


def test_what_we_write_into_a_redirected_log_is_not_overwritten(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with log.open("w") as file:  # as `> train.log 2>&1`: without O_APPEND
        job = subprocess.Popen(
            ["sh", "-c", "echo before >&2; read line; echo after >&2"], stdin=subprocess.PIPE, stderr=file
        )
    while not log.read_text():
        pass
    pidfd = os.pidfd_open(job.pid)
    stream = stderr_of(job.pid, pidfd)
    assert stream is not None
    os.write(stream, b"verdict\n")
    job.communicate(b"\n", timeout=30)
    os.close(stream)
    os.close(pidfd)
    assert log.read_text() == "before\nverdict\nafter\n"


def test_of_a_process_that_is_gone_there_is_none() -> None:
    job = subprocess.Popen(["true"])
    job.wait()
    assert stderr_of(job.pid, -1) is None
