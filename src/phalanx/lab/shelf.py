"""Beds that stay: where the command line writes down which beds are up, and finds them again."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from pathlib import Path

from phalanx.lab.bed import Bed
from phalanx.lab.errors import LabError
from phalanx.lab.host import Host

DEFAULT = "lab"


def shelf() -> Path:
    """A folder of this user's own."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base) / f"phalanx-lab-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise LabError(f"{folder} belongs to somebody else; set XDG_RUNTIME_DIR to a folder of your own")
    return folder


def remember(bed: Bed, name: str) -> None:
    """Write a bed down."""
    hosts = [
        {
            "name": host.name,
            "number": host.number,
            "pid": host.pid,
            "address": host.address,
            "address6": host.address6,
            "variables": host.variables,
            "limits": host.limits,
        }
        for host in bed
    ]
    told = {
        "keeper": bed.keeper_pid,
        "born": _born(bed.keeper_pid),
        "folder": str(bed.folder),
        "switch": bed.switch_pid,
        "user": bed.user_namespace,
        "applied": bed.applied,
        "command": bed.command,
        "commands": bed.commands,
        "hosts": hosts,
    }
    path = shelf() / f"{name}.json"
    new = path.with_suffix(".new")
    new.write_text(json.dumps(told, indent=1), encoding="utf-8")
    new.replace(path)


def recall(name: str) -> Bed:
    """A bed that is up."""
    path = shelf() / f"{name}.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        known = ", ".join(names()) or "none"
        raise LabError(f"there is no bed {name} (up: {known}); make one: phalanx lab up -n 3") from error
    if _born(told["keeper"]) != told["born"]:
        path.unlink(missing_ok=True)
        raise LabError(f"the bed {name} is gone; make it anew: phalanx lab up -n {len(told['hosts'])}")
    bed = Bed(len(told["hosts"]), stay=True)
    bed.keeper_pid, bed.folder = told["keeper"], Path(told["folder"])
    bed.switch_pid, bed.user_namespace, bed.applied = told["switch"], told["user"], told["applied"]
    bed.command, bed.commands = told.get("command", ""), told.get("commands", {})
    for one in told["hosts"]:
        host = Host(one["name"], one["number"], one["pid"], one["address"], one["address6"], bed.folder / one["name"])
        host.user_namespace, host.variables, host.limits = bed.user_namespace, one["variables"], one["limits"]
        bed.hosts.append(host)
    return bed


def names() -> list[str]:
    """The beds that are written down."""
    return sorted(path.stem for path in shelf().glob("*.json"))


def take_down(name: str) -> None:
    """End a bed by its keeper, and forget it."""
    bed = recall(name)
    os.kill(bed.keeper_pid, signal.SIGTERM)
    end = time.monotonic() + 10
    while time.monotonic() < end and _born(bed.keeper_pid):
        time.sleep(0.02)
    (shelf() / f"{name}.json").unlink(missing_ok=True)


def _born(pid: int) -> str:
    """When a process began, by the kernel's count: another process with the same number began at another time. Empty if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]
