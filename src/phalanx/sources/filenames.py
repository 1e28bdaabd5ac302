"""Tells the rank of a whole file from its name, alone or among its neighbours.

rank3.log  rank_3.err  rank.3/stdout  attempt_0/3/stderr.log  worker-3.out  slurm-812_3.out  job.3.out
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from phalanx.sources.text import NUMBER

_SURE = re.compile(r"(?:^|[^a-z])(?:global[_-]?)?rank[-_.=]?(?P<rank>\d{1,5})(?!\d)", re.I)
_TORCHRUN = re.compile(r"(?:^|/)attempt_\d+/(?P<rank>\d{1,5})/(?:stdout|stderr|error)\.?\w*$")
_STREAM_IN_NUMBER = re.compile(r"(?:^|/)(?P<rank>\d{1,5})/(?:stdout|stderr|out|err|output|log|error)[\w.]*$", re.I)
_ROLE = re.compile(r"(?:^|[^a-z])(?P<role>chief|master|worker|trainer|task|proc(?:ess)?|replica|gpu|ps|evaluator)[-_.]?(?P<index>\d{1,5})(?!\d)", re.I)  # fmt: skip
_BARE_ROLE = re.compile(r"(?:^|[^a-z])(?P<role>chief|master)(?:[^a-z]|$)", re.I)
# The log of a host's kernel or system is no rank's, whatever number the host has.
_SYSTEM = re.compile(r"(?:^|/)(?:dmesg|kern(?:el)?|syslog|journal(?:ctl)?|messages|console-host)(?:[^a-z]|$)", re.I)
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz")


def ranks_of_files(names: Sequence[str]) -> dict[str, int]:
    """The rank of each file whose name tells it. Files that hold several ranks are told apart inside instead."""
    found: dict[str, int] = {}
    roles: dict[str, tuple[str, int]] = {}
    names = [name for name in names if not _SYSTEM.search(_stripped(name))]
    for name in names:
        path = _stripped(name)
        sure = [match for pattern in (_TORCHRUN, _SURE, _STREAM_IN_NUMBER) if (match := pattern.search(path))]
        if sure:
            found[name] = int(sure[0]["rank"])
        elif match := _ROLE.search(path):
            roles[name] = (match["role"].lower(), int(match["index"]))
        elif match := _BARE_ROLE.search(path):
            roles[name] = (match["role"].lower(), 0)
    found.update(_ranks_of_roles(roles))
    rest = [name for name in names if name not in found]
    found.update(_ranks_by_template(rest))
    local = local_ranks(names)
    return {name: rank for name, rank in found.items() if name not in local}


def log_dir_place(name: str) -> tuple[str, int] | None:
    """The folder that one agent of torchrun was given by `--log-dir`, and the rank within its node; None for other files."""
    path = _stripped(name)
    match = _TORCHRUN.search(path)
    return (path[: match.start()], int(match["rank"])) if match is not None else None


def local_ranks(names: Sequence[str]) -> frozenset[str]:
    """Files of `torchrun --log-dir` whose number is only the rank within their node: several folders have the same ones."""
    folders: dict[int, set[str]] = defaultdict(set)
    numbered: dict[str, int] = {}
    for name in names:
        if (place := log_dir_place(name)) is not None:
            numbered[name] = place[1]
            folders[place[1]].add(place[0])
    return frozenset(name for name, rank in numbered.items() if len(folders[rank]) > 1)


def _stripped(name: str) -> str:
    path = name.replace("\\", "/")
    for suffix in _COMPRESSED:
        path = path.removesuffix(suffix)
    return path


def _ranks_of_roles(roles: dict[str, tuple[str, int]]) -> dict[str, int]:
    """Chief, then workers, then parameter servers, then evaluator: the order of a cluster specification."""
    if len(roles) < 2:
        return {name: index for name, (_, index) in roles.items()}
    order = {"chief": 0, "master": 0, "ps": 2, "evaluator": 3}
    members = sorted({(order.get(role, 1), index) for role, index in roles.values()})
    workers = [index for group, index in members if group == 1]
    starts_at_one = bool(workers) and min(workers) == 1 and (0, 0) not in members
    position = {member: number for number, member in enumerate(members)}
    plain = len({order.get(role, 1) for role, _ in roles.values()}) == 1
    return {
        name: (index - starts_at_one if plain else position[(order.get(role, 1), index)])
        for name, (role, index) in roles.items()
    }


def _ranks_by_template(names: Sequence[str]) -> dict[str, int]:
    """Neighbours whose names differ in one number only, counting from 0 or 1: that number is the rank."""
    groups: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for name in names:
        path = _stripped(name)
        for match in NUMBER.finditer(path):
            template = path[: match.start()] + "#" + path[match.end() :]
            if len(match[0]) <= 5 and not re.search(
                r"(?:node|host|agent|attempt|restart|part|chunk)[-_.]?#", template, re.I
            ):
                groups[(template, match.start())][name] = int(match[0])
    found: dict[str, int] = {}
    for group in sorted(groups.values(), key=len, reverse=True):
        numbers = sorted(group.values())
        counts_up = numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1)))
        if len(group) < 2 or not counts_up or any(name in found for name in group):
            continue
        for name, number in group.items():
            found[name] = number - numbers[0]
    return found
