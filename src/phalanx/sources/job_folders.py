"""Several jobs in one folder: which files are whose. What one job printed must not accuse or excuse a rank of another.

runs/2026-01-02/manifest.json  runs/2026-01-03/manifest.json    bundles
slurm-4711.out  slurm-4712.out  slurm-4712.err                  numbers that a scheduler gave
exp1/rank0.log  exp1/rank1.log  exp2/rank0.log  exp2/rank1.log  the same ranks in several folders
baseline.log  large-lr.log                                      files in which the same ranks speak
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from phalanx.sources.bundle import is_bundle

_SCHEDULED = re.compile(r"(?:^slurm-|^\w[\w.-]*\.[oe])(?P<job>\d+)(?:_\d+)?(?:\.(?:out|err|log))?$")
_OF_RANK = re.compile(r"(?:^|[^a-z])rank[-_.=]?(?P<rank>\d{1,5})(?!\d)", re.I)
# What is one job's, however often it is there: its hosts, and what a launcher started again.
_PARTS = re.compile(r"node|host|attempt|restart|worker|pod|rank|replica|gpu|\d+\.\d+\.\d+\.\d+", re.I)
# Pieces of one log: split, or put aside by logrotate.
_PIECE = re.compile(r"(?:part|chunk|split|segment|piece)[-_.]?\d|\.(?:log|out|err|txt)[.-]\d+$", re.I)
_SPEAKS = re.compile(rb"^\[rank(\d{1,5})\]: |^  rank +: (\d{1,5}) \(local_rank: ", re.M)
_STREAM = re.compile(r"[._-]?(?:std)?(?:out|err|log|txt)$", re.I)
_SAMPLE = 1 << 18


def find_jobs(folder: Path) -> dict[str, list[Path]]:
    """The paths of each job by its name, the oldest first; empty where the folder is of one job, or nothing tells them apart."""
    if not folder.is_dir() or is_bundle(folder):
        return {}
    entries = sorted(folder.iterdir())
    bundles = {path.name: [path] for path in entries if path.is_dir() and is_bundle(path)}
    for jobs in (bundles, _scheduled(entries), _folders(entries), _merged(entries)):
        if len(jobs) > 1:
            return dict(sorted(jobs.items(), key=lambda job: max(path.stat().st_mtime for path in job[1])))
    return {}


def _scheduled(entries: list[Path]) -> dict[str, list[Path]]:
    jobs: dict[str, list[Path]] = defaultdict(list)
    for path in entries:
        if path.is_file() and (match := _SCHEDULED.search(path.name)):
            jobs[f"job {match['job']}"].append(path)
    return jobs


def _folders(entries: list[Path]) -> dict[str, list[Path]]:
    """Folders that have a file for the same two ranks."""
    ranks = {
        path: frozenset(match["rank"] for one in path.iterdir() if (match := _OF_RANK.search(one.name)))
        for path in entries
        if path.is_dir() and not _PARTS.search(path.name)
    }
    alike = [path for path, own in ranks.items() if len(own) > 1]
    return {path.name: [path] for path in alike} if len({ranks[path] for path in alike}) == 1 else {}


def _merged(entries: list[Path]) -> dict[str, list[Path]]:
    """Files of all ranks each. The two streams of one job have one name, and its pieces are no jobs."""
    if any(_PIECE.search(path.name) for path in entries):
        return {}
    jobs: dict[str, list[Path]] = defaultdict(list)
    speakers: dict[str, set[int]] = defaultdict(set)
    for path in entries:
        if path.is_file() and not _OF_RANK.search(path.name) and (ranks := set(_ranks_in(path))):
            name = _STREAM.sub("", _STREAM.sub("", path.name)) or path.name
            jobs[name].append(path)
            speakers[name] |= ranks
    # the nodes of one job have other ranks each; one rank that both name can be a peer that was lost
    shared = [len(speakers[one] & speakers[other]) > 1 for one, other in combinations(jobs, 2)]
    return jobs if shared and all(shared) else {}


def _ranks_in(path: Path) -> Iterator[int]:
    try:
        with path.open("rb") as file:
            head = file.read(_SAMPLE)
            file.seek(max(file.tell(), path.stat().st_size - _SAMPLE))
            sample = head + b"\n" + file.read(_SAMPLE)
    except OSError:
        return
    for match in _SPEAKS.finditer(sample):
        yield int(match[1] or match[2])
