"""The script of safe fixes: what one host must change stands behind its name, what all must have alike is set everywhere, the rest is a comment."""

from __future__ import annotations

import subprocess

from phalanx.preflight.check import make_report
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.fix_script import write_fix_script
from tests.preflight.made import host_facts

HOSTS = [host_facts(name, {"RANK": name[1]}) for name in ("h0", "h1", "h2")]


def script_of(*check_facts: CheckFact) -> str:
    return write_fix_script(make_report(check_facts, HOSTS, ()))


def run(script: str, hostname: str, show: str) -> str:
    """What a shell on a host has after reading it."""
    told = f"hostname() {{ echo {hostname}; }}\n{script}\necho ${show}"
    return subprocess.run(["sh", "-c", told], capture_output=True, text=True, timeout=20, check=True).stdout.strip()


def test_a_variable_of_one_host() -> None:
    fields = {"variable": "NCCL_SOCKET_IFNAME", "value": "ib0", "good": "eth0", "has": "lo, eth0"}
    script = script_of(observe("interface-missing", ("h1",), **fields))  # type: ignore[arg-type]
    assert run(script, "h1", "NCCL_SOCKET_IFNAME") == "eth0"
    assert run(script, "h2", "NCCL_SOCKET_IFNAME") == ""


def test_what_all_must_have_alike_is_set_everywhere() -> None:
    script = script_of(observe("master-port-in-use", ("h0",), variable="MASTER_PORT", port=29500, value="29501"))
    assert [run(script, name, "MASTER_PORT") for name in ("h0", "h2")] == ["29501", "29501"]


def test_what_is_not_known_or_not_safe_is_only_a_comment() -> None:
    unknown = observe("master-addr-unresolvable", ("h1",), variable="MASTER_ADDR", value="hx", error="unknown")
    unsafe = observe("no-route-to-host", ("h1",), ("h2",), others="h2", places="10.77.0.12:1")
    lines = script_of(unknown, unsafe).splitlines()
    assert all(line.startswith("#") or not line for line in lines)
    assert sum(line.startswith("# by hand:") for line in lines) == 2


def test_values_from_hosts_are_quoted() -> None:
    harm = "$(touch /tmp/never); x"
    fields = {"value": harm, "meant": "NCCL_SOCKET_IFNAME", "name": "NCCL_SOCKET_IFNAM", "library": "NCCL"}
    script = script_of(observe("variable-misspelt", ("h0", "h1", "h2"), **fields))  # type: ignore[arg-type]
    assert run(script, "h0", "NCCL_SOCKET_IFNAME") == "$(touch /tmp/never); x"
