"""Whole jobs of small real processes: output, exits, endings, restarts, the bundle. No framework is needed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths

from .jobs import finish, processes_of, run, said, start, wait_for

FAILS = """\
import os, sys, time
rank = int(os.environ["RANK"])
print("hello from", rank, flush=True)
if rank == 1:
    time.sleep(0.3)
    raise ValueError("bad sample 17")
time.sleep(600)
"""
# A rank with a child in the same session, a grandchild in a session of its own, all deaf to polite requests.
FAMILY = """\
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
deaf = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", deaf])
subprocess.Popen([sys.executable, "-c", "import subprocess,sys; subprocess.Popen([sys.executable, '-c', %r], start_new_session=True)" % deaf]).wait()
print("ready", flush=True)
time.sleep(600)
"""


def ready(folder: Path, ranks: int) -> bool:
    logs = [folder / "bundle" / "attempt0" / f"rank{rank}" / "output.log" for rank in range(ranks)]
    return wait_for(lambda: all(log.exists() and b"ready" in log.read_bytes() for log in logs))


def test_a_good_job(tmp_path: Path) -> None:
    script = "import os, sys\nprint('same')\nprint('rank', os.environ['RANK'], file=sys.stderr)\nprint(sys.argv[1:])\n"
    done = run(tmp_path, "-n", "3", "train.py", "--format", "-n", "x", script=script)
    assert done.status == 0
    assert said(done.out) == {"same": [0, 1, 2], "['--format', '-n', 'x']": [0, 1, 2]}
    assert sorted(line for line in done.err.splitlines() if line.startswith("[")) == [
        f"[{rank}] rank {rank}" for rank in range(3)
    ]
    assert "not recognised" in done.err
    assert f"bundle: {tmp_path / 'bundle'}" in done.err
    assert done.manifest()["state"] == "ended"
    assert done.exit(2)["code"] == 0
    assert sorted((done.rank(1) / "output.log").read_text().splitlines()) == sorted(
        ["same", "rank 1", "['--format', '-n', 'x']"]
    )


def test_a_failing_rank_ends_the_job_and_is_accused(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "3", "--grace", "0.5", "train.py", script=FAILS)
    assert done.status == 1
    assert done.exit(1)["by"] is None
    assert done.exit(0)["by"] == "rank 1 ended with exit status 1"
    assert done.exit(1)["order"] == 0
    assert "ValueError: bad sample 17" in done.err
    assert "who  rank 1; ranks 0, 2 suffered from it" in done.err
    assert done.report()["verdict"]["culprit_ranks"] == [1]
    again = diagnose_paths([str(done.bundle)])  # the same again, by whoever reads the bundle
    assert again.verdict is not None
    assert again.verdict.summary == done.report()["verdict"]["summary"]
    assert processes_of(tmp_path) == []


def test_json_alone_on_standard_output(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "2", "--grace", "0.5", "--format", "json", "train.py", script=FAILS)
    report = json.loads(done.out)
    assert report["schema"] == "phalanx.report/1"
    assert report["verdict"]["culprit_ranks"] == [1]
    assert "[0-1] hello from" in done.err or "[0] hello from" in done.err
    assert done.status == 1


@pytest.mark.parametrize(("how", "status"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137), ("os.abort()", 134)])
def test_the_jobs_own_status(tmp_path: Path, how: str, status: int) -> None:
    script = f"import os, sys\nif os.environ['RANK'] == '1': {how}\n"
    assert run(tmp_path, "-n", "2", "--grace", "0.5", "train.py", script=script).status == status


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_everybody(tmp_path: Path, number: int) -> None:
    process = start(tmp_path, "-n", "2", "--grace", "0.5", "train.py", script=FAMILY)
    assert ready(tmp_path, 2)
    assert len(processes_of(tmp_path)) >= 7
    process.send_signal(number)
    done = finish(process, tmp_path)
    assert done.status == 128 + number
    assert processes_of(tmp_path) == []
    assert done.manifest()["reason"] == f"interrupted by {signal.Signals(number).name}"
    assert done.report()["verdict"] is None


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    process = start(tmp_path, "-n", "2", "--grace", "300", "train.py", script=FAMILY)
    assert ready(tmp_path, 2)
    process.send_signal(signal.SIGINT)
    assert wait_for(lambda: b"again to kill" in (tmp_path / "err").read_bytes())
    process.send_signal(signal.SIGINT)
    assert finish(process, tmp_path, 120).status == 130
    assert processes_of(tmp_path) == []


def test_a_killed_supervisor_leaves_nobody_and_a_readable_bundle(tmp_path: Path) -> None:
    process = start(tmp_path, "-n", "2", "train.py", script=FAMILY)
    assert ready(tmp_path, 2)
    process.kill()
    process.wait()
    assert wait_for(lambda: processes_of(tmp_path) == [], 60)
    report = diagnose_paths([str(tmp_path / "bundle")])
    assert report.world.size == 2
    assert "attempt0/rank1/output.log" in report.read


def test_time_limit(tmp_path: Path) -> None:
    done = run(
        tmp_path, "-n", "2", "--timeout", "2", "--grace", "1", "train.py", script="import time\ntime.sleep(600)\n"
    )
    assert done.status == 124
    assert "the time limit of 2 s was reached" in done.err


def test_a_stopped_rank_is_named_and_ended_without_a_wait(tmp_path: Path) -> None:
    """A stopped process takes note of SIGTERM only when it goes on; and the verdict stands on the screen once."""
    script = (
        "import os, signal, time\nif os.environ['RANK'] == '1': os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(600)\n"
    )
    done = run(tmp_path, "-n", "3", "--grace", "400", "--on-stall", "abort", "train.py", script=script)
    assert done.status == 1
    assert done.exit(1)["code"] == -signal.SIGTERM
    assert done.err.count("  who  rank 1") == 1
    assert done.report()["verdict"]["culprit_ranks"] == [1]


def test_restarts_have_folders_reasons_and_fresh_ports(tmp_path: Path) -> None:
    script = """\
import os, sys
print("port", os.environ["MASTER_PORT"], "attempt", os.environ["TORCHELASTIC_RESTART_COUNT"])
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "1":
    raise ValueError("no such shard")
"""
    done = run(
        tmp_path, "-n", "2", "--max-restarts", "2", "--grace", "1", "--format", "json", "train.py", script=script
    )
    assert done.status == 0
    told = json.loads(done.out)["restarts"]
    why = "rank 1 ended with exit status 1 (ValueError: no such shard)"
    assert told == [f"attempt 0: {why}; started again"]
    assert f"{why}: starting again (1 of 2)" in done.err
    assert [attempt["restarted"] for attempt in done.manifest()["attempts"]] == [True, False]
    first, second = ((done.rank(0, attempt) / "output.log").read_text().split()[1] for attempt in (0, 1))
    assert first != second
    assert not (done.bundle / "attempt2").exists()


def test_restarts_run_out(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "1", "--max-restarts", "1", "train.py", script="raise SystemExit(5)\n")
    assert done.status == 5
    assert len(done.manifest()["attempts"]) == 2


def test_secrets_are_in_no_file_of_the_bundle(tmp_path: Path) -> None:
    script = "import os\nprint('password=hunter2hunter2')\nprint('key', os.environ['WANDB_API_KEY'])\nprint([os.environ['MY_TOKEN']])\n"
    done = run(
        tmp_path, "-n", "2", "--env", "MY_TOKEN=verysecretvalue", "train.py", "--api-key", "opensesame99",
        script=script, WANDB_API_KEY="0123456789abcdef0123",
    )  # fmt: skip
    assert done.status == 0
    for path in done.bundle.rglob("*"):
        text = path.read_bytes() if path.is_file() else b""
        for secret in (b"hunter2hunter2", b"verysecretvalue", b"opensesame99", b"0123456789abcdef0123"):
            assert secret not in text, path
    assert "key [redacted]" in done.out


def test_thirty_two_ranks(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "32", "train.py", script="import os\nfor i in range(50): print('line', i)\n")
    assert done.status == 0
    assert all((done.rank(rank) / "output.log").read_text().count("\n") == 50 for rank in range(32))
    assert len([line for line in done.out.splitlines() if line.startswith("[")]) < 32 * 50


def test_module_and_program(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "train.py").write_text("import sys\nprint('module', sys.argv[1:])\n")
    done = run(tmp_path, "-n", "1", "-m", "pkg.train", "-x")
    assert done.out == "module ['-x']\n"
    (tmp_path / "two").mkdir()
    done = run(tmp_path / "two", "-n", "2", "--", "sh", "-c", "echo $WORLD_SIZE")
    assert said(done.out) == {"2": [0, 1]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-n", "2", "nothere.py"], "no such script"),
        (["-n", "2", "--env", "X", "train.py"], "give NAME=VALUE"),
        (["--roles", "boss=1", "train.py"], "give counts of chief"),
        (["train.py"], "say how many ranks"),
    ],
)
def test_what_cannot_be_started_says_what_to_do(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = run(tmp_path, *arguments, script="")
    assert done.status == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_bundle_is_not_written_over(tmp_path: Path) -> None:
    assert run(tmp_path, "-n", "1", "train.py", script="").status == 0
    done = run(tmp_path, "-n", "1", "train.py")
    assert done.status == 2
    assert "not empty" in done.err


def test_a_program_that_cannot_be_executed(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"\x7fELFnot really")
    bad.chmod(0o755)
    done = run(tmp_path, "-n", "2", "--", str(bad))
    assert done.status == 126
    assert "cannot start" in done.err
    assert "Traceback" not in done.err


def test_the_job_goes_on_when_nobody_reads_its_output(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("for i in range(20000): print('line', i)\n")
    command = f"{sys.executable} -m phalanx run --bundle bundle -n 2 train.py | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, timeout=200, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bundle" / "attempt0" / "rank1" / "output.log").read_text().count("\n") == 20000


def test_a_full_disk_is_said_once_and_the_job_goes_on(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("needs root, to mount a small file system")
    try:
        (tmp_path / "train.py").write_text(
            "for i in range(20000): print('a line that fills the disk', i)\nprint('end')\n"
        )
        done = finish(
            subprocess.Popen(
                [sys.executable, "-m", "phalanx", "run", "-n", "2", "--bundle", str(small / "b"), "train.py"],
                cwd=tmp_path,
                stdout=(tmp_path / "out").open("wb"),
                stderr=(tmp_path / "err").open("wb"),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            ),
            tmp_path,
        )
        assert done.status == 0
        assert said(done.out)["end"] == [0, 1]
        assert done.err.count("cannot be written") == 1
    finally:
        subprocess.run(["umount", str(small)], check=False)
