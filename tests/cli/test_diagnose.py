"""The command as a user types it: a real process, its streams and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..model.test_report import OOM

PHALANX = [sys.executable, "-c", "from phalanx.cli import main; main()"]


def phalanx(
    *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PHALANX, *arguments],
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
        env={**os.environ, **(env or {})},
    )


def test_findings_exit_1_and_json(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(OOM)
    done = phalanx("diagnose", str(tmp_path), "--format", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"]["culprit_ranks"] == [2]
    assert done.stderr == b""


def test_health_exits_0(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("epoch 1 step 1 loss 2\ntraining finished\n")
    assert phalanx("diagnose", str(tmp_path)).returncode == 0


@pytest.mark.parametrize("form", ["text", "json", "sarif", "html"])
def test_standard_input_and_output_file(tmp_path: Path, form: str) -> None:
    out = tmp_path / "report"
    done = phalanx("diagnose", "-", "--format", form, "--output", str(out), stdin=OOM.encode())
    assert done.returncode == 1
    assert done.stdout == b""
    assert "memory" in out.read_text().lower()


def test_wrong_path_exits_2_with_advice() -> None:
    done = phalanx("diagnose", "/no/such/log")
    assert done.returncode == 2
    assert b"no such file or folder; give a log file" in done.stderr
    assert b"Traceback" not in done.stderr


def test_cannot_write_exits_2(tmp_path: Path) -> None:
    done = phalanx("diagnose", "-", "--output", str(tmp_path / "no" / "dir" / "x"), stdin=OOM.encode())
    assert done.returncode == 2
    assert b"cannot write" in done.stderr


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(OOM)
    command = " ".join(f"'{part}'" for part in [*PHALANX, "diagnose", str(tmp_path), "--all"]) + " | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120, check=False)
    assert done.stdout.count(b"\n") == 1
    assert b"Traceback" not in done.stderr


def test_no_color_is_honoured(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(OOM)
    forced = phalanx("diagnose", str(tmp_path), env={"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"})
    assert b"\x1b[31m" not in forced.stdout
    assert b"\x1b[1;31m" not in forced.stdout


def test_help_has_examples() -> None:
    done = phalanx("diagnose", "--help")
    assert done.returncode == 0
    assert b"phalanx diagnose job.log" in done.stdout
    assert b"Exit codes" in done.stdout


def test_rules_verbs() -> None:
    listed = phalanx("rules", "list", "--symptom", "perf.hang")
    assert b"HNG001" in listed.stdout
    explained = phalanx("rules", "explain", "hng001")
    assert b"watchdog" in explained.stdout.lower()
    assert phalanx("rules", "explain", "XXX999").returncode == 2
    assert phalanx("rules", "test", "HNG001").returncode == 0


def test_completion_is_offered() -> None:
    done = phalanx("--show-completion", "bash", env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert b"complete" in done.stdout
