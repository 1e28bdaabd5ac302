"""`phalanx run --on`: a script through driver and agents, on two nodes, as a user starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.calls.conftest import SOURCE, ssh_config  # noqa: F401 (a fixture)
from tests.run.jobs import Done, finish, processes_of, run, start, wait_for

pytestmark = pytest.mark.timeout(300)
SCRIPT = """\
import os, sys, time
import helper
rank = int(os.environ["RANK"])
print("rank", rank, "of", os.environ["WORLD_SIZE"], "group", os.environ["GROUP_RANK"], sys.argv[1:], helper.WORD, flush=True)
if sys.argv[1] == "fail" and rank == 3:
    raise ValueError("bad sample 17")
if sys.argv[1] == "wait":
    time.sleep(3600)
if sys.argv[1] == "fail":
    time.sleep(2)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("WORD = 'helped'\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "huge.bin").write_text("not to travel")
    (tmp_path / ".gitignore").write_text("data/\nout\nerr\nbundle/\n")
    return tmp_path


def over_ssh(project: Path, config: Path, *arguments: str) -> Done:
    engine = ("--on", "ssh://alpha,beta", "--with", f"config={config}", "--env", f"PYTHONPATH={SOURCE}")
    return run(project, "-n", "4", "--grace", "2", *engine, "train.py", *arguments, script=SCRIPT)


def test_a_script_on_two_hosts_with_the_files_it_needs(project: Path, ssh_config: Path) -> None:  # noqa: F811
    done = over_ssh(project, ssh_config, "ok", "a;b $(c)")
    assert done.status == 0, done.err
    for rank in range(4):
        assert f"rank {rank} of 4 group {rank // 2} ['ok', 'a;b $(c)'] helped" in done.out
    assert "3 files travel with the job" in done.err
    assert done.manifest()["backend"] == "ssh"
    assert (done.rank(3) / "output.log").read_text().startswith("rank 3 of 4")


def test_one_verdict_across_nodes_names_the_users_own_file(project: Path, ssh_config: Path) -> None:  # noqa: F811
    done = over_ssh(project, ssh_config, "fail")
    assert done.status == 1, done.err
    verdict = done.report()["verdict"]
    assert verdict["culprit_ranks"] == [3]
    assert "rank 3 on beta ended with exit status 1" in done.err
    assert f"{project}/train.py" in (done.rank(3) / "output.log").read_text()  # not where it ran


def test_ctrl_c_ends_it_on_all_hosts(project: Path) -> None:
    job = start(
        project, "-n", "2", "--on", "local", "--with", "nodes=2", "--grace", "2", "train.py", "wait", script=SCRIPT
    )
    assert wait_for(lambda: (project / "out").read_text().count("group") == 2), (project / "err").read_text()
    job.send_signal(signal.SIGINT)
    done = finish(job, project)
    assert done.status == 130
    assert wait_for(lambda: processes_of(project) == [], 30)


def test_dry_run_says_what_would_happen_and_does_nothing(project: Path) -> None:
    (project / "train.py").write_text(SCRIPT)
    (project / ".env").write_text("SECRET=1")
    done = _phalanx(project, "-n", "4", "--on", "ssh://a,b", "--env", "MY_WORD=opensesame", "--dry-run", "train.py")
    assert done.returncode == 0, done.stderr
    assert "opensesame" not in done.stdout, "values of variables stand in nobody's arguments"
    assert "3 files travel from" in done.stdout
    assert "    helper.py (16 bytes)\n" in done.stdout
    assert "    not .env: credentials" in done.stdout
    assert "a: ranks 0 to 1" in done.stdout
    assert "-- b 'exec " in done.stdout
    assert not (project / "phalanx-runs").exists()


def test_the_plan_says_who_has_which_task_and_whose_interpreter_is_used(project: Path) -> None:
    (project / "train.py").write_text(SCRIPT)
    asked = ("--roles", "chief=1,worker=2,ps=1", "--python", "/opt/tf/python", "--on", "ssh://a,b", "--dry-run")
    done = _phalanx(project, *asked, "train.py")
    assert "b: ranks 2 to 3 (worker 1, ps 0)" in done.stdout, done.stderr
    assert "exec /opt/tf/python -m phalanx.remote.agent" in done.stdout
    done = _phalanx(project, *asked, "--with", "agent_python=/opt/phalanx/python", "train.py")
    assert "exec /opt/phalanx/python -m phalanx.remote.agent" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--on", "slrum"), "no backend is called slrum"),
        (("--on", "ssh"), "ssh needs hosts"),
        (("--on", "ssh://a,b", "--with", "partition=x"), "does not know partition"),
        (("--on", "local", "--with", "nodes"), "--with nodes: give NAME=VALUE"),
        (("--on", "ssh://-oProxyCommand=evil,b"), "no name of a host"),
        (("--with", "nodes=2"), "say which by --on"),
        (("--record", "--framework", "torch", "--on", "ssh://a,b"), "a recording is made without --on only"),
    ],
)
def test_mistakes_are_told_before_anything_starts(project: Path, arguments: tuple[str, ...], words: str) -> None:
    (project / "train.py").write_text(SCRIPT)
    done = _phalanx(project, "-n", "4", *arguments, "train.py")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (project / "phalanx-runs").exists()


def _phalanx(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, "-m", "phalanx", "run", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
