"""Logs on several hosts, read where they lie, give the verdict that the same logs give in one folder. The hosts are shell stand-ins with folders of their own; one test reaches them by SSH on loopback."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import phalanx
from phalanx.diagnosis import diagnose_paths
from phalanx.diagnosis.afar import Party, share_out

SOURCE = str(Path(phalanx.__file__).parent.parent)
STEPS = "".join(f"[rank{{rank}}]: step {step} loss {1 / (step + 1):.4f}\n" for step in range(50))
RAISED = """\
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/job/train.py", line 31, in collate
[rank{rank}]:     labels = batch["labels"]
[rank{rank}]: KeyError: 'labels'
"""
CLOSED = "[rank{rank}]: RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:7084\n"


def write_logs(folder: Path) -> None:
    for host in range(3):
        logs = folder / f"h{host}" / "logs"
        logs.mkdir(parents=True)
        for rank in (2 * host, 2 * host + 1):
            text = STEPS + (RAISED if rank == 3 else CLOSED)
            (logs / f"rank{rank}.log").write_text(text.replace("{rank}", str(rank)))


def diagnose(*arguments: str) -> tuple[dict[str, Any], int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", "diagnose", "--format", "json", *arguments],
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip
    return json.loads(done.stdout) if done.stdout else {}, done.returncode, done.stderr


def test_the_verdict_is_that_of_all_logs_in_one_folder(tmp_path: Path) -> None:
    write_logs(tmp_path)
    each = f"sh -c 'cd {shlex.quote(str(tmp_path))}/{{}} && exec \"$@\"' x"
    report, status, err = diagnose("--hosts", "h0,h1,h2", "--each", each, "logs")
    here = diagnose_paths([str(tmp_path)])
    assert status == 1, err
    assert here.verdict is not None
    assert report["verdict"]["culprit_ranks"] == list(here.verdict.culprit_ranks) == [3]
    assert report["verdict"]["rule"] == here.verdict.rule
    assert report["verdict"]["evidence"][0]["line"] == here.verdict.evidence[0].line
    assert report["verdict"]["evidence"][0]["text"] == here.verdict.evidence[0].text
    assert report["world"]["size"] == here.world.size
    assert sorted(report["read"]) == sorted(
        f"h{host}/rank{2 * host + more}.log" for host in range(3) for more in (0, 1)
    )
    assert "read 6 files of" in err


def test_a_host_that_fails_is_said_and_left_out(tmp_path: Path) -> None:
    write_logs(tmp_path)
    each = f"sh -c 'cd {shlex.quote(str(tmp_path))}/{{}} && exec \"$@\"' x"
    report, status, err = diagnose("--hosts", "h1,nowhere", "--each", each, "logs")
    assert status == 1
    assert report["verdict"]["culprit_ranks"] == [3]
    assert "phalanx: nowhere: " in err
    assert any("nowhere" in item["what"] for item in report["not_checked"])
    _, status, err = diagnose("--hosts", "h1", "--each", each, "other")
    assert (status, "h1: other: no such file or folder" in err) == (2, True), err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--hosts", ",", "logs"], "names nobody"),
        (["--hosts", "a", "--slurm", "3", "logs"], "give one of"),
        (["--hosts", "a", "-"], "give paths"),
        (["--each", "ssh {}", "logs"], "--each needs --hosts"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], said: str) -> None:
    _, status, err = diagnose(*arguments)
    assert status == 2
    assert said in err


def test_files_on_a_shared_file_system_are_read_once() -> None:
    shared = [("rank0.log", 100, 1, 11), ("rank1.log", 90, 1, 12), ("rank2.log", 80, 1, 13)]
    own = ("agent.log", 5, 1, 99)
    parties = [Party("a", ["x"], files=[*shared, own]), Party("b", ["x"], files=[*shared, ("agent.log", 5, 2, 98)])]
    share_out(parties)
    read = [name for party in parties for name in party.read.values()]
    assert sorted(read) == ["a/agent.log", "b/agent.log", "rank0.log", "rank1.log", "rank2.log"]
    assert all(party.read for party in parties)


def test_hosts_over_ssh(tmp_path: Path, ssh_config: Path) -> None:
    write_logs(tmp_path)
    each = f"ssh -F {ssh_config} -o BatchMode=yes {{}}"
    report, status, err = diagnose("--hosts", "alpha,beta", "--each", each, str(tmp_path / "h1"), str(tmp_path / "h0"))
    assert status == 1, err
    assert report["verdict"]["culprit_ranks"] == [3]
