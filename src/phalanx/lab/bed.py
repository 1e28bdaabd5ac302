"""A bed: hosts as network namespaces on one switch, made in well under a second, gone with the process that made it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from phalanx.lab.errors import LabError
from phalanx.lab.host import Host, batch, load, table

NETWORK, NETWORK6 = "10.77.0", "fd77::"
PORT = 29500
_PROGRAMS = {"ip": "iproute2", "nsenter": "util-linux", "setpriv": "util-linux", "nft": "nftables"}
_KEEPER = Path(__file__).with_name("keeper.py")
_MOST = 200  # addresses of one /24


@dataclass(slots=True)
class Bed:
    """`with Bed(3) as bed: bed["h1"].run([...])`. The variables of a torch job are set for what runs on the hosts."""

    count: int = 3
    stay: bool = False  # outlive this process, for the command line
    mtu: int = 1500
    hosts: list[Host] = field(default_factory=list)
    folder: Path = field(default_factory=Path)
    switch_pid: int = 0
    keeper_pid: int = 0
    user_namespace: bool = False
    applied: list[str] = field(default_factory=list)
    strangers: list[Host] = field(default_factory=list)  # machines of the network that are not of the job
    command: str = ""  # that will start the job on all hosts, as given after --
    commands: dict[str, str] = field(default_factory=dict)  # by host, where each has its own: `h0: torchrun …`
    services: list[subprocess.Popen[str]] = field(default_factory=list)  # that faults have started
    _keeper: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.down()

    def __getitem__(self, name: str) -> Host:
        for host in self.hosts:
            if host.name == name:
                return host
        raise LabError(f"there is no host {name}; there are {', '.join(host.name for host in self.hosts)}")

    def __iter__(self) -> Iterator[Host]:
        return iter(self.hosts)

    def up(self) -> None:
        """Make the namespaces, the switch and the cables."""
        check_programs()
        if not 1 <= self.count <= _MOST:
            raise LabError(f"a bed has 1 to {_MOST} hosts, not {self.count}")
        self.folder = Path(tempfile.mkdtemp(prefix="phalanx-lab-"))
        self.folder.chmod(0o755)
        try:
            self._start_keeper()
            self._lay_cables()
        except BaseException:
            self.down()
            raise

    def _start_keeper(self) -> None:
        names = [f"h{number}" for number in range(self.count)]
        specs = [{"name": name, "binds": self._write_files(number, names)} for number, name in enumerate(names)]
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        self._keeper, self.keeper_pid = keeper, keeper.pid
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        assert keeper.stderr is not None
        keeper.stdin.write(json.dumps({"hosts": specs, "folder": str(self.folder), "stay": self.stay}) + "\n")
        keeper.stdin.flush()
        line = keeper.stdout.readline()
        if not line:
            keeper.wait(10)
            raise LabError(_advice(keeper.stderr.read().strip()))
        answer = json.loads(line)
        self.switch_pid, self.user_namespace = answer["switch"], answer["user"]
        for number, (name, pid) in enumerate(zip(names, answer["hosts"], strict=True)):
            host = Host(name, number, pid, f"{NETWORK}.{10 + number}", f"{NETWORK6}{10 + number:x}", self.folder / name)
            host.user_namespace = self.user_namespace
            self.hosts.append(host)
        for host in self.hosts:
            host.variables = self.variables_of(host.number)

    def _write_files(self, number: int, names: Sequence[str]) -> dict[str, str]:
        """Each host's own view of names: files, no DNS."""
        folder = self.folder / f"h{number}"
        folder.mkdir()
        lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
        lines += [f"{NETWORK}.{10 + other} {name}" for other, name in enumerate(names)]
        files = {
            "hosts": "\n".join(lines) + "\n",
            "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
            "resolv.conf": "",
            "hostname": f"h{number}\n",
        }
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return {f"/etc/{name}": str(folder / name) for name in files}

    def _lay_cables(self) -> None:
        lines = ["link set lo up", "link add sw0 type bridge mcast_snooping 0", "link set sw0 up"]
        for host in self.hosts:
            lines.append(
                f"link add {host.port} mtu {self.mtu} type veth peer name eth0 mtu {self.mtu} netns {host.pid}"
            )
            lines.append(f"link set {host.port} master sw0 up")
        self.switch_ip(*lines)
        setting = [
            subprocess.Popen(
                [*host.entry, "--", "ip", "-batch", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for host in self.hosts
        ]
        for host, process in zip(self.hosts, setting, strict=True):
            lines = [
                "link set lo up",
                f"addr add {host.address}/24 dev eth0",
                f"addr add {host.address6}/64 dev eth0 nodad",
            ]
            _, error = process.communicate("\n".join([*lines, "link set eth0 up"]) + "\n", timeout=30)
            if process.returncode != 0:
                raise LabError(f"{host.name}: {error.strip()}")

    def variables_of(self, number: int) -> dict[str, str]:
        """What a launcher would set for one rank a host."""
        return {
            "MASTER_ADDR": self.hosts[0].address,
            "MASTER_PORT": str(PORT),
            "RANK": str(number),
            "WORLD_SIZE": str(self.count),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
        }

    def set_variables(self, variables: Mapping[str, str], *, on: Sequence[str] = ()) -> None:
        """Set variables of the job, on some hosts or on all."""
        for host in self.hosts:
            if not on or host.name in on:
                host.variables |= variables

    def put_ranks(self, count: int) -> None:
        """Several ranks on every host, as torchrun numbers them."""
        size = {"WORLD_SIZE": str(count * len(self.hosts)), "LOCAL_WORLD_SIZE": str(count)}
        for host in self.hosts:
            numbers = [{"RANK": str(host.number * count + local), "LOCAL_RANK": str(local)} for local in range(count)]
            host.ranks = [{**one, **size} for one in numbers]
            host.variables |= host.ranks[0]

    @property
    def switch_entry(self) -> list[str]:
        """The command that enters the switch."""
        user = ["-U", "--preserve-credentials"] if self.user_namespace else []
        return ["nsenter", "-t", str(self.switch_pid), *user, "-n", "--"]

    @property
    def switch_inside(self) -> list[str]:
        """The same for what stays: it is then a process of the bed, and ends with it."""
        return [*self.switch_entry[:-1], "-p", "--"]

    def switch_ip(self, *lines: str) -> None:
        """Lines of `ip -batch` in the switch."""
        batch([*self.switch_entry, "ip", "-batch", "-"], lines, "switch")

    def switch_filter(self, *rules: str) -> None:
        """Rules on what the switch forwards; `iifname "p1"` is what comes from h1."""
        load([*self.switch_entry, "nft", "-f", "-"], table("bridge", "forward", rules), "switch")

    def down(self) -> None:
        """End everything that runs in the bed and remove it."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.terminate()  # it ends the bed's first process, and with it all others
            try:
                keeper.wait(10)
            except subprocess.TimeoutExpired:
                keeper.kill()
                keeper.wait(10)
            for stream in (keeper.stdin, keeper.stdout, keeper.stderr):
                if stream is not None:
                    stream.close()
        for service in self.services:
            service.kill()
            service.wait(10)
            if service.stdout is not None:
                service.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.hosts.clear()

    def kill(self, host: Host) -> None:
        """End all that runs on a host, as if it were switched off."""
        os.kill(host.pid, signal.SIGKILL)


def check_programs() -> None:
    """Say what is missing before anything is made."""
    missing = sorted({package for name, package in _PROGRAMS.items() if shutil.which(name, path=search_path()) is None})
    if missing:
        raise LabError(f"the lab needs {', '.join(missing)}: apt-get install {' '.join(missing)}")
    os.environ["PATH"] = search_path()


def search_path() -> str:
    """PATH with the folders that hold ip and nft, which users' shells often leave out."""
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(parts + [folder for folder in ("/usr/sbin", "/sbin") if folder not in parts])


def _advice(error: str) -> str:
    if os.geteuid() != 0:
        return (
            f"namespaces could not be made ({error}). Become root, or let users make them: "
            "sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 (and, on Ubuntu, "
            "kernel.apparmor_restrict_unprivileged_userns=0)."
        )
    return f"namespaces could not be made: {error}. In a container, give it CAP_SYS_ADMIN and CAP_NET_ADMIN."
