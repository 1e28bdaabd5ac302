"""The script of safe fixes: what one host must change stands behind its name, what all must have alike is set everywhere, the rest is a comment."""

from __future__ import annotations

import subprocess

from phalanx.check.check import make_report
from phalanx.check.fix_script import write_fix_script
from phalanx.check.reading import Reading
from tests.check.made import witness

HOSTS = [witness(name, {"RANK": name[1]}) for name in ("h0", "h1", "h2")]


def script_of(*readings: Reading) -> str:
    return write_fix_script(make_report(readings, HOSTS, ()))


def run(script: str, hostname: str, show: str) -> str:
    """What a shell on a host has after reading it."""
    told = f"hostname() {{ echo {hostname}; }}\n{script}\necho ${show}"
    return subprocess.run(["sh", "-c", told], capture_output=True, text=True, timeout=20, check=True).stdout.strip()


def test_a_variable_of_one_host() -> None:
    text = "check: NCCL_SOCKET_IFNAME=ib0, but there is no such interface on h1; found lo, eth0"
    values = {"variable": "NCCL_SOCKET_IFNAME", "good": "eth0", "there": "h1"}
    script = script_of(Reading(text, ("h1",), values=values))
    assert run(script, "h1", "NCCL_SOCKET_IFNAME") == "eth0"
    assert run(script, "h2", "NCCL_SOCKET_IFNAME") == ""


def test_what_all_must_have_alike_is_set_everywhere() -> None:
    text = "check: port 29500 (MASTER_PORT) is already in use on h0: process 4711 (python) listens on 0.0.0.0"
    script = script_of(Reading(text, ("h0",), values={"variable": "MASTER_PORT", "value": "29501"}))
    assert [run(script, name, "MASTER_PORT") for name in ("h0", "h2")] == ["29501", "29501"]


def test_what_is_not_known_or_not_safe_is_only_a_comment() -> None:
    unknown = Reading("check: MASTER_ADDR=hx does not resolve on h1 (unknown)", ("h1",), values={"address": ""})
    unsafe = Reading("check: h1 has no route to h2: 10.77.0.12:1", ("h1",), ("h2",))
    lines = script_of(unknown, unsafe).splitlines()
    assert all(line.startswith("#") or not line for line in lines)
    assert sum(line.startswith("# by hand:") for line in lines) == 2


def test_values_from_hosts_are_quoted() -> None:
    text = "check: NCCL_SOCKET_IFNAM on h0, h1 and h2 is read by nothing; NCCL reads NCCL_SOCKET_IFNAME"
    values = {"value": "$(touch /tmp/never); x", "meant": "NCCL_SOCKET_IFNAME", "name": "NCCL_SOCKET_IFNAM"}
    script = script_of(Reading(text, ("h0", "h1", "h2"), values=values))
    assert run(script, "h0", "NCCL_SOCKET_IFNAME") == "$(touch /tmp/never); x"
