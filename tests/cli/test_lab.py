"""`phalanx lab`: beds that stay, commands on their hosts, rehearsals, and errors in a sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab.beds import needs_beds

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def phalanx(tmp_path: Path):  # type: ignore[no-untyped-def]
    """The command line with a shelf of its own; beds left up are taken down."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "XDG_RUNTIME_DIR": str(tmp_path), "COLUMNS": "140"}
        command = [sys.executable, "-c", "from phalanx.cli import main; main()", "lab", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)

    yield run
    run("down")


@needs_beds
def test_a_bed_stays_until_it_is_taken_down(phalanx) -> None:  # type: ignore[no-untyped-def]
    up = phalanx("up", "-n", "2", "--fault", "port-in-use")
    assert up.returncode == 0, up.stderr
    assert up.stdout.startswith("2 hosts in ")
    assert "broken by port-in-use" in up.stdout
    on = phalanx("exec", "h1", "--", "sh", "-c", "hostname; echo $RANK; exit 3")
    assert (on.stdout.split(), on.returncode) == (["h1", "1"], 3)
    assert "is up already" in phalanx("up").stderr
    assert phalanx("break", "own-name-missing").returncode == 0
    assert phalanx("exec", "h1", "--", "getent", "hosts", "h1").returncode == 2
    check = phalanx("check")
    assert check.returncode == 1
    assert "h0" in check.stdout
    assert phalanx("down").stdout == "the bed lab is gone\n"
    gone = phalanx("exec", "h1", "--", "true")
    assert gone.returncode == 2
    assert "there is no bed lab" in gone.stderr


@needs_beds
def test_a_bed_whose_keeper_is_gone_is_said_to_be_gone(phalanx, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import json

    assert phalanx("up", "-n", "1").returncode == 0
    (path,) = tmp_path.glob("phalanx-lab-*/lab.json")
    keeper = json.loads(path.read_text(encoding="utf-8"))["keeper"]
    os.kill(keeper, 9)
    time.sleep(0.3)
    assert "the bed lab is gone; make it anew" in phalanx("exec", "h0", "--", "true").stderr


@needs_beds
def test_a_rehearsal_runs_on_every_host_and_tells_who_failed(phalanx) -> None:  # type: ignore[no-untyped-def]
    done = phalanx("run", "-n", "2", "--fault", "master-port-wrong", "--", "sh", "-c", "echo $MASTER_PORT; exit $RANK")
    assert sorted(done.stdout.splitlines()) == ["[h0] 29500", "[h1] 29501"]
    assert done.returncode == 1
    assert "h1 ended with 1" in done.stderr
    late = phalanx("run", "-n", "1", "--timeout", "0.5", "--", "sleep", "50")
    assert "h0 ended with 124 (time was up)" in late.stderr


def test_faults_are_listed_and_mistakes_are_said(phalanx) -> None:  # type: ignore[no-untyped-def]
    listed = phalanx("faults", "mtu")
    assert listed.returncode == 0
    assert "mtu-jumbo" in listed.stdout
    assert "mtu-black-hole" in listed.stdout
    assert "loss" not in listed.stdout
    unknown = phalanx("exec", "h0", "--", "true")
    assert unknown.returncode == 2
    assert "Traceback" not in unknown.stderr


@needs_beds
@pytest.mark.skipif(shutil.which("sshd", path="/usr/sbin:/sbin") is None, reason="apt-get install openssh-server")
def test_hosts_of_a_bed_reach_each_other_over_ssh(phalanx) -> None:  # type: ignore[no-untyped-def]
    up = phalanx("up", "-n", "2", "--ssh")
    assert up.returncode == 0, up.stderr
    on = phalanx("exec", "h0", "--", "ssh", "h1", "hostname; echo $PYTHONPATH")
    assert on.stdout.split() == ["h1", str(SOURCE)], on.stderr
