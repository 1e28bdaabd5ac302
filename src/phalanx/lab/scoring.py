"""Scores `phalanx check` on broken and healthy beds, as a user would run it: from outside, or in place of the script under a launcher."""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import phalanx
from phalanx.lab.bed import Bed
from phalanx.lab.fault import Expected, Fault

# From outside; as ranks that share a folder; as ranks whose folders are their own, so that only the network joins them.
WAYS = ("each", "launcher", "apart")
_CHECK = (sys.executable, "-m", "phalanx", "check", "--format", "json")
_SOURCE = str(Path(phalanx.__file__).parents[1])
_BOUND_S = 120.0


@dataclass(frozen=True, slots=True)
class Score:
    """What came of one bed: `found`, `vague` (another cause first, or an innocent host accused), `missed`, `quiet` or `alarm`."""

    name: str
    way: str
    verdict: str
    seconds: float
    said: tuple[str, ...]  # each finding's cause, with the hosts that it accuses
    held_back: bool = False


def score_fault(fault: Fault, way: str, count: int) -> Score | None:
    """Make the bed, break it, check it; None where the fault does not show in this way."""
    expected = fault.expected
    if expected.found_by != "check" or (expected.only_inside if way == "each" else expected.only_outside):
        return None
    with Bed(max(count, expected.at_least)) as bed:
        fault.apply(bed)
        everybody = {host.name for host in bed}
        began = time.monotonic()
        reports = _outside(bed) if way == "each" else _as_ranks(bed, shared=way == "launcher")
        took = time.monotonic() - began
    said = tuple(
        f"{one['cause']} ({', '.join(one['culprit_hosts'])})" for report in reports for one in report["findings"]
    )
    verdict = verdict_on(expected, reports, everybody)
    return Score(fault.name, way, verdict, took, said, expected.held_back)


def verdict_on(expected: Expected, reports: Sequence[Mapping[str, Any]], everybody: set[str]) -> str:
    """By the first finding of any report, and by who is accused in any; what is said of all hosts accuses none."""
    findings = [one for report in reports for one in report["findings"]]
    if not expected.cause:
        return "alarm" if findings else "quiet" if reports else "missed"
    if not findings:
        return "missed"
    firsts = {report["findings"][0]["cause"] for report in reports if report["findings"]}
    accused = {host for one in findings if set(one["culprit_hosts"]) != everybody for host in one["culprit_hosts"]}
    is_innocent_accused = bool(expected.hosts) and not accused <= set(expected.hosts)
    return "found" if firsts & {expected.cause, *expected.also} and not is_innocent_accused else "vague"


def _outside(bed: Bed) -> list[dict[str, Any]]:
    """From this machine, or from h0 where the bed has SSH servers."""
    names = ["--hosts", ",".join(host.name for host in bed)]
    told = [word for host in bed if host.name in bed.commands for word in ("--each", bed.commands[host.name])]
    line = ["--", *shlex.split(bed.command)] if bed.command else []
    if (bed.folder / "ssh").exists():
        inside = [*bed.hosts[0].prefix, "env", f"PYTHONPATH={_SOURCE}", *_CHECK, *names, *told, *line]
        return _read([_start(inside, Path.cwd())])
    ways = [word for host in bed for word in ("--each", shlex.join(host.prefix))]
    return _read([_start([*_CHECK, *names, *ways, *told, "--python", sys.executable, *line], Path.cwd())])


def _as_ranks(bed: Bed, *, shared: bool) -> list[dict[str, Any]]:
    """On every host at once, in one folder or each in its own."""
    started = []
    for host in bed:
        folder = bed.folder / ("work" if shared else f"{host.name}/work")
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)  # for jobs of another user
        # A PYTHONPATH that the bed sets is part of what is tested.
        path = f"{given}:{_SOURCE}" if (given := host.variables.get("PYTHONPATH")) else _SOURCE
        more = ["env", "PHALANX_CHECK_LINK=1", f"PYTHONPATH={path}", *_CHECK]
        started += [_start([*host.in_folder(folder, told), *more], folder) for told in host.ranks or [{}]]
    return _read(started)


def _start(command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder
    )


def _read(started: Iterable[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """The reports that were written; most ranks write none."""
    until = time.monotonic() + _BOUND_S
    found = []
    for process in list(started):
        try:
            out, _ = process.communicate(timeout=max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            continue
        try:
            found.append(json.loads(out))
        except ValueError:
            continue
    return found


def summarise(scores: Sequence[Score]) -> str:
    """The counts of one way in a line."""
    counts = {name: sum(one.verdict == name for one in scores) for name in ("found", "vague", "missed")}
    faulty = sum(counts.values())
    healthy = [one for one in scores if one.verdict in ("quiet", "alarm")]
    alarms = sum(one.verdict == "alarm" for one in healthy)
    times = [one.seconds for one in scores] or [0.0]
    return (
        f"{faulty} faulty: {counts['found']} found, {counts['vague']} vague, {counts['missed']} missed; "
        f"{len(healthy)} healthy: {alarms} alarms; median {statistics.median(times):.1f} s, longest {max(times):.1f} s"
    )
