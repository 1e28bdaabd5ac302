"""What the kernel wrote down since the job began and about it: errors of its GPUs (Xid), a rank that it killed for want of memory.

4,2111,903214411,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus.
3,2112,903214500,-;Memory cgroup out of memory: Killed process 4242 (python) total-vm:9412kB, anon-rss:8012kB, …, UID:1000 pgtables:…

A GPU's line is told of the rank that uses that GPU. A kill is told only if a rank of the job is gone, since others of the same user may be killed, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from phalanx.attaching.discovery import FoundJob
from phalanx.attaching.evidence import Piece, Scene
from phalanx.model.bundle import KERNEL

_XID = re.compile(r"NVRM: (?:Xid|GPU at) \(?(?:PCI:)?(?P<bus>[0-9a-fA-F]+:[0-9a-fA-F]+:[0-9a-fA-F]+)")
_KILL = re.compile(
    r"(?:Memory cgroup out of memory|Out of memory)[^:]*: Killed process (?P<pid>\d+) .*?UID:(?P<user>\d+)"
)
_MOST = 20_000  # records
_LOG = "/dev/kmsg"
_GPUS = "/proc/driver/nvidia/gpus"


def collect(scene: Scene) -> Iterator[Piece]:
    """One piece for this machine, if there is anything."""
    try:
        records = list(read_log(_LOG, scene.started))
    except OSError:
        return  # kernel.dmesg_restrict, or a container
    lines = list(lines_about(scene.job, records, gpus_of(scene.job)))
    if lines:
        yield Piece(KERNEL.format(scene.host), f"kernel log of {scene.host}", None, "\n".join(lines) + "\n")


def read_log(path: str, since: float) -> Iterator[str]:
    """The texts of all records since a time, in seconds after the system's start. Raises OSError."""
    log = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        for _ in range(_MOST):
            try:
                record = os.read(log, 8192)
            except BrokenPipeError:  # overwritten before it was read
                continue
            except BlockingIOError:
                return
            if not record:
                return
            head, _, text = record.decode("utf-8", "replace").partition(";")
            fields = head.split(",")
            if len(fields) > 2 and fields[2].isdigit() and int(fields[2]) / 1e6 >= since:
                yield text.split("\n", 1)[0]
    finally:
        os.close(log)


def lines_about(job: FoundJob, records: list[str], gpus: dict[str, list[int]]) -> Iterator[str]:
    """The lines that concern the job, each with the rank's label where one rank is meant."""
    users = {one.process.user for one in job.ranks}
    for text in records:
        if (xid := _XID.search(text)) is not None:
            ranks = gpus.get(bus_of(xid["bus"]), [])
            if ranks:
                yield f"[rank{ranks[0]}]: {text}" if len(ranks) == 1 else text
        elif (kill := _KILL.search(text)) is not None and job.missing and int(kill["user"]) in users:
            yield f"[rank{job.missing[0]}]: {text}" if len(job.missing) == 1 else text


def gpus_of(job: FoundJob, folder: str = _GPUS) -> dict[str, list[int]]:
    """By PCI address, the ranks that have the GPU open."""
    buses = {}
    for information in Path(folder).glob("*/information"):
        told = information.read_text(encoding="ascii", errors="replace")
        minor = re.search(r"Device Minor:\s+(\d+)", told)
        if minor is not None:
            buses[f"/dev/nvidia{minor[1]}"] = bus_of(information.parent.name)
    found: dict[str, list[int]] = {}
    for one in job.ranks:
        for device in _open_devices(one.process.pid):
            if device in buses and one.identity.rank not in found.setdefault(buses[device], []):
                found[buses[device]].append(one.identity.rank)
    return found


def _open_devices(pid: int) -> set[str]:
    found = set()
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            found.add(str(entry.readlink()))
    except OSError:
        pass
    return {path for path in found if path.startswith("/dev/nvidia")}


def bus_of(text: str) -> str:
    """`0000:3b:00.0`, `PCI:0000:3B:00` and nvidia-smi's `00000000:3B:00.0` are one GPU."""
    domain, bus, device = text.lower().split(".")[0].split(":")
    return f"{int(domain, 16):x}:{bus}:{device}"
