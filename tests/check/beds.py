"""Hosts for tests: network namespaces on one bridge, each with its own name and hosts file. Needs root and iproute2."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None,
    reason="needs root, and the Debian packages iproute2 and util-linux",
)
_HOLD = "import os, signal; os.write(1, b'x'); signal.pause()"


@dataclass
class BedHost:
    """One of the hosts; `prefix` runs a command on it."""

    name: str
    address: str
    pid: int

    @property
    def prefix(self) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-n", "-u", "-m", "--"]

    def run(self, *command: str) -> str:
        done = subprocess.run([*self.prefix, *command], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def each(self, **variables: str) -> str:
        """A value for --each that also sets variables of the job."""
        return " ".join([*self.prefix, "env", *(f"{name}={value}" for name, value in variables.items())])


def _hold(*namespaces: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        ["unshare", *namespaces, sys.executable, "-c", _HOLD], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.read(1)
    return process


@contextmanager
def bed(folder: Path, count: int = 2, hosts_file: str | None = None) -> Iterator[list[BedHost]]:
    """Hosts h0, h1, … at 10.77.0.10, .11, …, which know one another by name."""
    switch = _hold("-n")
    held = [switch]
    try:
        at_switch = ["nsenter", "-t", str(switch.pid), "-n", "--", "ip"]
        subprocess.run([*at_switch, "link", "add", "sw0", "type", "bridge"], check=True, timeout=20)
        subprocess.run([*at_switch, "link", "set", "sw0", "up"], check=True, timeout=20)
        found = []
        names = [f"10.77.0.{10 + number} h{number}" for number in range(count)]
        for number in range(count):
            process = _hold("-n", "-u", "-m")
            held.append(process)
            host = BedHost(f"h{number}", f"10.77.0.{10 + number}", process.pid)
            file = folder / f"hosts{number}"
            file.write_text(hosts_file or "127.0.0.1 localhost\n" + "\n".join(names) + "\n")
            port = f"p{number}"
            link = ["link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(process.pid)]
            subprocess.run([*at_switch, *link], check=True, timeout=20)
            subprocess.run([*at_switch, "link", "set", port, "master", "sw0", "up"], check=True, timeout=20)
            host.run(
                "sh",
                "-c",
                f"hostname {host.name}; mount --make-rprivate /; mount --bind {file} /etc/hosts; "
                f"echo 'hosts: files' > {folder}/nss; mount --bind {folder}/nss /etc/nsswitch.conf; "
                f"ip link set lo up; ip addr add {host.address}/24 dev eth0; ip link set eth0 up",
            )
            found.append(host)
        yield found
    finally:
        for process in held:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
