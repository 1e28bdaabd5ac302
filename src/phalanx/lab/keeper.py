"""Runs as a process of its own and keeps a bed alive: makes the namespaces, and takes all that is in them along when it ends.

The bed is a process namespace whose first process is this program's child, and every host one within it. The kernel ends
all of a process namespace with its first process, so nothing outlives the keeper, whatever it is ended by. Standard library only,
no import of ours: it is started by its path, without site, to be up in a moment.

Input, one line of JSON: {"hosts": [{"name": "h0", "binds": {"/etc/hosts": "/…"}}], "folder": "/…", "stay": false}
Output, one line of JSON: {"switch": 4711, "hosts": [4712, …], "user": true}, process ids as the caller sees them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import sys
from typing import Any

NEW_USER, NEW_PID, NEW_NET = 0x10000000, 0x20000000, 0x40000000
NEW_UTS, NEW_IPC, NEW_MOUNT = 0x04000000, 0x08000000, 0x00020000
_PRIVATE, _RECURSIVE, _BIND = 1 << 18, 1 << 14, 1 << 12
_DEATH_SIGNAL = 1
_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the given namespaces for new ones."""
    if _libc.unshare(flags) != 0:
        _fail("unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """The system call; see mount(2)."""
    arguments = (source.encode(), target.encode(), kind.encode() or None, flags, options.encode() or None)
    if _libc.mount(*arguments[:3], ctypes.c_ulong(flags), arguments[4]) != 0:
        _fail(f"mount {target}")


def _fail(what: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, f"{what}: {os.strerror(number)}")


def die_with_parent() -> None:
    """The kernel ends this process when its parent ends, however that ends."""
    _libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def outer_id() -> int:
    """This process as the caller sees it: /proc is still the caller's."""
    return int(os.readlink("/proc/self"))


def become_root_of_own() -> None:
    """A user namespace in which the caller's user is root: what makes the rest possible without being root."""
    user, group = os.getuid(), os.getgid()
    unshare(NEW_USER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def become_host(spec: dict[str, Any], report: int) -> None:
    """The life of a host's first process: set the stage, say so, then only collect the dead."""
    socket.sethostname(spec["name"])
    mount("none", "/", flags=_PRIVATE | _RECURSIVE)
    number = outer_id()
    for target, source in spec["binds"].items():
        with contextlib.suppress(FileNotFoundError):
            mount(source, target, flags=_BIND)
    mount("proc", "/proc", "proc")
    mount("sysfs", "/sys", "sysfs")
    for folder, options in (("/dev/shm", "mode=1777"), ("/run", "mode=755")):
        mount("tmpfs", folder, "tmpfs", 0, options)
    os.makedirs("/run/sshd", exist_ok=True)
    os.write(report, f"{json.dumps({'name': spec['name'], 'pid': number})}\n".encode())
    os.close(report)
    collect_the_dead()


def collect_the_dead() -> None:
    """What the first process of a process namespace is for."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            signal.pause()


def start(flags: int, then: Any) -> None:
    """Fork a child into new namespaces; with a process namespace it takes a second fork to be in it."""
    if os.fork():
        return
    try:
        unshare(flags)
        if flags & NEW_PID and os.fork():
            os._exit(0)
        then()
    except BaseException as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
    os._exit(1)


def be_the_bed(config: dict[str, Any]) -> None:
    """First process of the bed: starts the switch and the hosts, answers, and stays until its input ends."""
    die_with_parent()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    reading, writing = os.pipe()

    def be_the_switch() -> None:
        os.write(writing, f"{json.dumps({'name': '', 'pid': outer_id()})}\n".encode())
        os.close(writing)
        collect_the_dead()

    start(NEW_NET, be_the_switch)
    host_flags = NEW_NET | NEW_UTS | NEW_IPC | NEW_MOUNT | NEW_PID
    for spec in config["hosts"]:
        start(host_flags, lambda spec=spec: become_host(spec, writing))
    os.close(writing)
    with os.fdopen(reading, encoding="ascii") as reports:
        ready = {one["name"]: one["pid"] for one in map(json.loads, reports)}
    missing = [spec["name"] for spec in config["hosts"] if spec["name"] not in ready]
    if missing or "" not in ready:
        sys.stderr.write(f"these did not come up: {', '.join(missing) or 'the switch'}\n")
        os._exit(1)
    answer = {"switch": ready[""], "hosts": [ready[spec["name"]] for spec in config["hosts"]], "user": config["user"]}
    os.write(1, f"{json.dumps(answer)}\n".encode())
    if config["stay"]:
        collect_the_dead()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while os.read(0, 1024):
        pass
    os._exit(0)


def main() -> int:
    """Keep one bed, then remove its folder."""
    config = json.loads(sys.stdin.readline())
    config["user"] = os.geteuid() != 0
    if config["stay"]:
        os.setsid()
    try:
        if config["user"]:
            become_root_of_own()
        unshare(NEW_PID)
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    first = os.fork()
    if first == 0:
        be_the_bed(config)
    # Only the first process shall hold the pipes, so that their ends are seen.
    for number in (0, 1):
        os.close(number)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
    _, status = os.waitpid(first, 0)
    shutil.rmtree(config["folder"], ignore_errors=True)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
