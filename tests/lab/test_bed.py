"""Beds: quick to make, apart from each other and from this machine, and gone whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from phalanx.lab import Bed, Host, LabError
from tests.lab.beds import needs_beds

SOURCE = Path(__file__).parents[2] / "src"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pids: list[int], seconds: float = 20) -> list[int]:
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(map(alive, pids)):
        time.sleep(0.05)
    return [pid for pid in pids if alive(pid)]


@needs_beds
def test_three_hosts_with_names_and_addresses_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    with Bed(3) as bed:
        took = time.monotonic() - began
        assert took < 20  # under half a second on an idle machine
        for host in bed:
            told = host.run(
                ["sh", "-c", "hostname; getent hosts $(hostname) h0; echo $RANK $WORLD_SIZE $MASTER_ADDR; ip -br link"]
            )
            lines = told.stdout.splitlines()
            assert lines[0] == host.name
            assert lines[1].split()[0] == host.address
            assert lines[2].split() == ["10.77.0.10", "h0"]
            assert lines[3] == f"{host.number} 3 10.77.0.10"
            assert {line.split()[0].split("@")[0] for line in lines[4:]} == {"lo", "eth0"}
    with capsys.disabled():
        print(f" [3 hosts in {took:.2f} s]", end="")


def programs(host: Host) -> list[str]:
    """What runs on a host, by name; some may end while we look."""
    return host.run(["sh", "-c", "cat /proc/[0-9]*/comm"], check=False).stdout.split()


@needs_beds
def test_hosts_see_only_their_own_processes_and_the_working_folder_stays() -> None:
    with Bed(2) as bed:
        sleeper = bed["h0"].start(["sleep", "100"])
        assert "sleep" not in programs(bed["h1"])
        assert "sleep" in programs(bed["h0"])
        assert bed["h0"].run(["pwd"]).stdout.strip() == str(Path.cwd())
        sleeper.kill()
        sleeper.wait(10)
        end = time.monotonic() + 10
        while time.monotonic() < end and "sleep" in programs(bed["h0"]):
            time.sleep(0.05)
        assert "sleep" not in programs(bed["h0"])


PARENT = """
import sys, time
from phalanx.lab import Bed
from phalanx.lab.fault import apply_faults
bed = Bed(2)
bed.up()
apply_faults(bed, ["port-in-use", "delay"])
sleeper = bed["h1"].start(["sleep", "1000"])
print(bed.keeper_pid, bed.switch_pid, *(host.pid for host in bed), *(one.pid for one in bed.services), sleeper.pid, flush=True)
print(bed.folder, flush=True)
time.sleep(1000)
"""


@needs_beds
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_parent_is_killed(how: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    folder = Path(parent.stdout.readline().strip())
    assert len(pids) == 7
    assert all(map(alive, pids))
    assert folder.is_dir()
    parent.send_signal(how)
    parent.wait(20)
    parent.stdout.close()
    assert wait_until_gone(pids) == []
    end = time.monotonic() + 10
    while time.monotonic() < end and folder.exists():
        time.sleep(0.05)
    assert not folder.exists()


@needs_beds
def test_nothing_is_left_when_the_keeper_is_killed() -> None:
    with Bed(2) as bed:
        pids = [bed.switch_pid, *(host.pid for host in bed)]
        os.kill(bed.keeper_pid, signal.SIGKILL)
        assert wait_until_gone(pids) == []


USER = """
import sys
sys.path.insert(0, sys.argv[1])
from phalanx.lab import Bed
from phalanx.lab.fault import apply_faults
with Bed(2) as bed:
    assert bed.user_namespace
    apply_faults(bed, ["firewall-high-ports", "small-shm"])
    print(bed["h1"].run(["hostname"]).stdout.strip(), bed["h1"].run(["getent", "hosts", "h0"]).stdout.split())
"""


@needs_beds
def test_no_root_is_needed() -> None:
    python = shutil.which("python3", path="/usr/bin")
    version = subprocess.run([python or "false", "-V"], capture_output=True, text=True, timeout=20, check=False).stdout
    if python is None or version < "Python 3.11":
        pytest.skip("needs a Python 3.11 that other users can run: apt-get install python3")
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(SOURCE / "phalanx" / "lab", folder / "phalanx" / "lab")
        (folder / "phalanx" / "__init__.py").write_text("", encoding="utf-8")
        user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        done = subprocess.run(
            [*user, python, "-c", USER, name],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd="/",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
    assert done.stdout.strip() == "h1 ['10.77.0.10', 'h0']", done.stderr


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("phalanx.lab.bed.search_path", lambda: str(tmp_path))
    with pytest.raises(LabError, match="apt-get install iproute2 nftables util-linux"):
        Bed(2).up()


def test_a_bed_has_a_bounded_number_of_hosts() -> None:
    with pytest.raises(LabError, match="1 to 200 hosts, not 0"):
        Bed(0).up()


@needs_beds
def test_a_host_that_is_not_there_is_said_to_be_missing() -> None:
    with Bed(1) as bed, pytest.raises(LabError, match="there is no host h7; there are h0"):
        bed["h7"]
