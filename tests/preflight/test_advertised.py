"""Which address a library would tell its peers, compared with what Gloo really tells where it can be run."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.lab import Bed
from phalanx.lab.host import Host
from phalanx.preflight.advertised import gloo_address, mpi_addresses, nccl_address, nccl_admits, nccl_interfaces
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.targets import Target, by_command
from tests.lab.beds import each, needs_beds
from tests.preflight.made import host_facts, interface

MANY = {
    "lo": interface("127.0.0.1/8", "::1/128", loopback=True),
    "docker0": interface("172.17.0.1/16"),
    "eth0": interface("10.0.0.1/24", "fd00::1/64"),
    "ib0": interface("192.168.0.1/24"),
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["ib0"]),
        ("eth", ["eth0"]),
        ("=eth", []),
        ("=eth0", ["eth0"]),
        ("^docker,lo", ["eth0", "ib0"]),
        ("^=eth0", ["lo", "docker0", "ib0"]),
        ("eth0,ib0", ["eth0", "ib0"]),
    ],
)
def test_nccl_chooses_by_prefix_or_exactly(value: str | None, expected: list[str]) -> None:
    one = host_facts("h1", {"NCCL_SOCKET_IFNAME": value} if value else {}, MANY)
    assert nccl_interfaces(one) == expected


def test_nccl_takes_bridges_and_loopback_last() -> None:
    few = {name: MANY[name] for name in ("lo", "docker0")}
    assert nccl_address(host_facts("h1", {}, few)) == "172.17.0.1"
    assert nccl_address(host_facts("h1", {}, {"lo": MANY["lo"]})) == "127.0.0.1"
    assert (
        nccl_address(host_facts("h1", {"NCCL_SOCKET_FAMILY": "AF_INET6", "NCCL_SOCKET_IFNAME": "eth0"}, MANY))
        == "fd00::1"
    )
    assert nccl_admits("eth0:1", "eth0")


def test_mpi_tells_everything_but_loopback() -> None:
    assert mpi_addresses(host_facts("h1", {}, MANY)) == ["172.17.0.1", "10.0.0.1", "fd00::1", "192.168.0.1"]
    assert mpi_addresses(host_facts("h1", {"OMPI_MCA_btl_tcp_if_include": "10.0.0.0/8"}, MANY)) == ["10.0.0.1"]
    assert "172.17.0.1" not in mpi_addresses(host_facts("h1", {"OMPI_MCA_btl_tcp_if_exclude": "lo,docker0"}, MANY))


_CASES = (
    ("10.77.0.10 h0", "", "10.77.0.10"),
    ("127.0.1.1 h0", "", "127.0.1.1"),
    ("10.77.0.99 h0", "", "127.0.0.1"),
    ("127.0.1.1 h0", "eth0", "10.77.0.10"),
)
# One process for all cases: importing torch takes longer than everything else.
_TELL = """
import os, sys
from datetime import timedelta
from torch import distributed
for line in sys.stdin:
    entry, interface, file = line.rstrip("\\n").split("|")
    open("/etc/hosts", "w").write("127.0.0.1 localhost\\n" + entry + "\\n")
    os.environ.pop("GLOO_SOCKET_IFNAME", None)
    if interface:
        os.environ["GLOO_SOCKET_IFNAME"] = interface
    try:
        distributed.ProcessGroupGloo(distributed.FileStore(file, 2), 0, 2, timedelta(seconds=0.2))
    except RuntimeError:
        pass  # nobody else comes; what it would tell stands in the store
"""


def seen(host: Host, **variables: str) -> HostFacts:
    target = by_command(host.name, each(host, **variables), sys.executable, 30.0)
    assert isinstance(target, Target)
    facts = target.ask("facts", {}, 30.0)[0]
    target.close()
    return HostFacts(host.name, host.name, (), facts)


@needs_beds
@pytest.mark.job
def test_gloo_tells_what_is_foretold(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="pip install torch")
    with Bed(1) as bed:
        host = bed["h0"]
        lines = [f"{entry}|{name}|{tmp_path}/store{number}" for number, (entry, name, _) in enumerate(_CASES)]
        command = [*host.entry, "--", sys.executable, "-c", _TELL]
        subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=250, check=False)
        for number, (entry, name, address) in enumerate(_CASES):
            host.names(f"127.0.0.1 localhost\n{entry}\n")
            assert gloo_address(seen(host, **({"GLOO_SOCKET_IFNAME": name} if name else {}))) == address
            assert socket.inet_aton(address) in (tmp_path / f"store{number}").read_bytes()
