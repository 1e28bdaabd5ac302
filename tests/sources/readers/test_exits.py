"""Exits as launchers word them."""

from __future__ import annotations

import pytest

from phalanx.model import EventKind

from .test_tracebacks import events


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  rank      : 2 (local_rank: 2)\n  exitcode  : -9 (pid: 4242)\n", [(2, -9)]),
        ("failed (exitcode: 1) local_rank: 3 (pid: 77) of binary: /usr/bin/python\n", [(3, 1)]),
        ("subprocess.CalledProcessError: Command '['python', '-u', 'train.py', '--local_rank=1']' returned non-zero exit status 1.\n", [(1, 1)]),
        ("mpirun noticed that process rank 2 with PID 4242 on node node0 exited on signal 9 (Killed).\n", [(2, -9)]),
        ("  Process name: [[1234,1],2]\n  Exit code:    1\n", [(2, 1)]),
        ("Process name: 2\nExit code: 137\n", [(2, -9)]),
        ("Process 1 exit with status code 143.\n", [(1, -15)]),
        ("srun: error: node0: task 2: Killed\n", [(2, -9)]),
        ("go.sh: line 3: 28140 Killed                  RANK=1 python -u train.py\n", [(1, -9)]),
        ("go.sh: line 3: 28140 Killed                  python train.py --rank=3\n", [(3, -9)]),
        ("go.sh: line 3: 28140 Killed                  python train.py\n", []),
        ("[rank: 1] Child process with PID 455 terminated with code -9. Forcefully terminating all other processes\n", [(1, -9)]),
        ("[ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py', '--local_rank=3'] exits with return code = -9\n", [(None, -9)]),
        ("srun: error: node0: tasks 0-2,5: Exited with exit code 1\n", [(0, 1), (1, 1), (2, 1), (5, 1)]),
        ("srun: error: node0: task 1: Segmentation fault (core dumped)\n", [(1, -11)]),
        ("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n", [(1, -9)]),
    ],
)  # fmt: skip
def test_exit(text: str, expected: list[tuple[int, int]]) -> None:
    found = [(event.rank, event.data["code"]) for event in events(text) if event.kind is EventKind.EXIT]
    assert found == expected


def test_records() -> None:
    found = {(event.rank, event.data["code"]) for event in events('{"0": 0, "2": 137}', "exit_codes.json")}
    assert found == {(0, 0), (2, -9)}


def test_torchruns_error_file() -> None:
    text = (
        '{"message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": '
        '"Traceback (most recent call last):\\n  File \\"/home/user/train.py\\", line 7, in main\\n    go()\\n", "timestamp": "1"}}}'
    )
    (event,) = events(text, "attempt_0/2/error.json")
    assert (event.rank, event.text, event.kind) == (2, "ValueError: bad", EventKind.EXCEPTION)
    assert event.user_frame is not None
    assert event.user_frame.line == 7
