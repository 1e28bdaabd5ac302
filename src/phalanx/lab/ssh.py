"""An SSH server on every host of a bed, with keys and a configuration of its own: `ssh h1` works from any host."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import phalanx
from phalanx.lab.bed import Bed
from phalanx.lab.errors import LabError
from phalanx.lab.host import Host

_SERVER = """\
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PrintMotd no
UseDNS no
"""
_CLIENT = """\
Host *
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  PasswordAuthentication no
"""


def start_ssh(bed: Bed, paths: Mapping[str, str] | None = None) -> None:
    """Start the servers, unless they run; `paths` is the PATH that commands find over SSH, by host."""
    if (bed.folder / "ssh").exists():
        return
    server = shutil.which("sshd")
    if server is None:
        raise LabError("the lab needs sshd for this: apt-get install openssh-server")
    if bed.user_namespace:
        raise LabError("sshd runs as root only: become root for this fault")
    shared = bed.folder / "ssh"
    shared.mkdir(mode=0o700)
    make_key(shared / "user_key")
    (shared / "config").write_text(_CLIENT.format(folder=shared), encoding="utf-8")
    known = []
    for host in bed:
        own = shared / host.name
        own.mkdir()
        make_key(own / "host_key")
        shutil.copy(shared / "user_key.pub", own / "authorized_keys")
        # A home without files of its own: what a user's start-up file adds to PATH must not undo it.
        path = f" PATH={paths[host.name]} HOME={own}" if paths and host.name in paths else ""
        # What runs on the hosts is this very phalanx, installed or not.
        setting = f"SetEnv PYTHONPATH={Path(phalanx.__file__).parents[1]}{path}\n"
        (own / "sshd_config").write_text(_SERVER.format(folder=own) + setting, encoding="utf-8")
        known.append(f"{host.name},{host.address} {(own / 'host_key.pub').read_text(encoding='utf-8').strip()}")
    (shared / "known_hosts").write_text("\n".join(known) + "\n", encoding="utf-8")
    for host in bed:
        host.run(["mount", "--bind", str(shared / "config"), "/etc/ssh/ssh_config"])
        run_server(host, server, shared / host.name)


def make_key(path: Path) -> None:
    """A key pair without a passphrase."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise LabError(f"ssh-keygen: {done.stderr.strip()}")


def run_server(host: Host, server: str, folder: Path) -> None:
    """Start sshd on one host and wait until it listens."""
    host.run([server, "-f", str(folder / "sshd_config"), "-E", str(folder / "log")])
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if ":0016 " in host.run(["cat", "/proc/net/tcp"]).stdout:
            return
        time.sleep(0.02)
    raise LabError(f"{host.name}: sshd did not come up: {(folder / 'log').read_text(encoding='utf-8')[-300:]}")
