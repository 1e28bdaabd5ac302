"""A real sshd of our own on two loopback addresses, known to ssh as two hosts by a configuration of our own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SSHD = shutil.which("sshd") or ("/usr/sbin/sshd" if Path("/usr/sbin/sshd").exists() else None)
NEEDS = "needs root and OpenSSH's server: apt-get install openssh-server openssh-client"


def is_possible() -> bool:
    return SSHD is not None and shutil.which("ssh") is not None and os.geteuid() == 0


@contextmanager
def two_hosts(folder: Path) -> Iterator[Path]:
    """The path of an ssh configuration in which `alpha` and `beta` can be reached."""
    folder.chmod(0o700)
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True, timeout=60)
    shutil.copy(folder / "user.pub", folder / "authorized")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nListenAddress 127.0.0.2\nPort {port}\nHostKey {folder}/host\nUsePAM no\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nPasswordAuthentication no\nStrictModes no\nPermitRootLogin yes\n"
        "MaxStartups 50:30:100\n"
    )
    config = folder / "config"
    config.write_text(
        "Host alpha\n  HostName 127.0.0.1\nHost beta\n  HostName 127.0.0.2\nHost nowhere\n  HostName 127.0.0.3\n"
        f"Host *\n  Port {port}\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known\n  StrictHostKeyChecking accept-new\n  LogLevel ERROR\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([str(SSHD), "-D", "-f", folder / "sshd_config", "-E", folder / "log"])
    try:
        _wait(port, server, folder)
        yield config
    finally:
        server.kill()
        server.wait()


def _wait(port: int, server: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.2", port), timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError((folder / "log").read_text())
