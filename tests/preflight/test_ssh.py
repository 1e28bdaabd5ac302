"""Hosts over a real sshd on loopback: healthy, and with every fault of the way there."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from phalanx.preflight.check import examine
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.targets import Failure, Target, by_ssh

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or SSHD is None or shutil.which("ssh") is None,
    reason="needs root, and the Debian packages openssh-server and openssh-client",
)


@dataclass
class Server:
    """A running sshd, and an ssh configuration that knows it as `node1`."""

    folder: Path
    port: int

    def configure(self, monkeypatch: pytest.MonkeyPatch, **changes: str) -> None:
        """Make `ssh` use a configuration of ours, through a wrapper in PATH, since it always reads the user's own."""
        settings = {
            "HostName": "127.0.0.1",
            "Port": str(self.port),
            "User": getpass.getuser(),
            "IdentityFile": str(self.folder / "key"),
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": str(self.folder / "known"),
            "GlobalKnownHostsFile": "none",
        } | changes
        config = self.folder / "config"
        config.write_text("Host node1\n" + "".join(f"  {name} {value}\n" for name, value in settings.items()))
        program = self.folder / "bin" / "ssh"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh", path="/usr/bin:/usr/local/bin")} -F {config} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("host", "key", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True, timeout=30)
    (folder / "authorized").write_text((folder / "key.pub").read_text())
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    Path("/run/sshd").mkdir(exist_ok=True)
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        f"UsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n"
    )
    process = subprocess.Popen([str(SSHD), "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.05)
    key = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {key}")
    yield Server(folder, port)
    process.terminate()
    process.wait()


def failed(host: str = "node1") -> tuple[str, tuple[str, ...]]:
    """The cause that is named for a host that cannot be used, and whom it accuses."""
    found = by_ssh(host, sys.executable, 30.0)
    assert isinstance(found, Failure), "it was to fail"
    finding = examine([], CheckOptions(), [found]).findings[0]
    return finding.cause, finding.culprit_hosts


def test_a_healthy_host_answers(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.configure(monkeypatch)
    target = by_ssh("node1", sys.executable, 30.0)
    assert isinstance(target, Target), target
    report = examine([target], CheckOptions())
    target.close()
    assert report.findings == ()
    assert report.read == ("node1",)


def test_the_key_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.configure(monkeypatch, IdentityFile=str(server.folder / "other"))
    assert failed() == ("ssh-key-refused", ("node1",))


def test_the_host_key_has_changed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    known = server.folder / "changed"
    known.write_text(f"[127.0.0.1]:{server.port} {(server.folder / 'other.pub').read_text()}")
    server.configure(monkeypatch, UserKnownHostsFile=str(known))
    assert failed() == ("ssh-host-key-changed", ("node1",))


def test_the_host_key_is_unknown(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.configure(monkeypatch, UserKnownHostsFile=str(server.folder / "empty"))
    assert failed() == ("ssh-host-key-unknown", ("node1",))


def test_nothing_listens(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.configure(monkeypatch, Port="1")
    assert failed() == ("ssh-unreachable", ("node1",))


def test_the_name_does_not_resolve(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.configure(monkeypatch, HostName="no-such-host.invalid")
    assert failed() == ("ssh-name-unresolvable", ("node1",))


def test_there_is_no_such_interpreter(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.configure(monkeypatch)
    found = by_ssh("node1", "/opt/none/python3", 30.0)
    assert isinstance(found, Failure)
    assert examine([], CheckOptions(), [found]).findings[0].cause == "ssh-path"


def test_a_path_without_python_is_told_though_one_was_found(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/usr/bin/python3").exists():
        pytest.skip("needs the Debian package python3")
    empty = server.folder / "nothing"
    empty.mkdir(exist_ok=True)
    for name in ("sh", "echo"):
        if not (empty / name).exists():
            (empty / name).symlink_to(shutil.which(name) or "/bin/sh")
    server.configure(monkeypatch)
    keys = server.folder / "authorized"
    keys.write_text(
        f'command="PATH={empty}; export PATH; eval \\"$SSH_ORIGINAL_COMMAND\\"" '
        + (server.folder / "key.pub").read_text()
    )
    try:
        target = by_ssh("node1", None, 30.0)
        assert isinstance(target, Target), target
        report = examine([target], CheckOptions())
        target.close()
    finally:
        keys.write_text((server.folder / "key.pub").read_text())
    assert [finding.cause for finding in report.findings] == ["ssh-path-incomplete"]
