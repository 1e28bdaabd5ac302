"""Reads which hosts to examine: names, Slurm's lists (`node[0-3,7]`), host files of launchers, and the allocation that we run in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path

from phalanx.sources.named import read_named_text

_ALLOCATION = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
_MOST = 5000


def read_hosts(given: str, variables: Mapping[str, str]) -> list[str]:
    """The hosts that `--hosts` names, each once. Raises ValueError if it names nobody, or what cannot be read."""
    if given == "slurm":
        listed = next((variables[name] for name in _ALLOCATION if variables.get(name)), "")
        if not listed:
            raise ValueError(
                "slurm: there is no SLURM_JOB_NODELIST here; run it inside of an allocation (salloc, sbatch)"
            )
        return expand(listed)
    path = Path(given.removeprefix("@"))
    if given.startswith("@") or (("/" in given or path.suffix) and path.is_file()):
        try:
            hosts = hosts_in_file(read_named_text(path))
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from error
        if not hosts:
            raise ValueError(f"{path} names no host")
        return hosts
    hosts = expand(given)
    if not hosts:
        raise ValueError("give names, as in node0,node1, or node[0-3], @HOSTFILE, slurm")
    twice = next((name for name in hosts if hosts.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is named twice")
    return hosts


def hosts_in_file(text: str) -> list[str]:
    """`h0 slots=8` of Open MPI, DeepSpeed and Horovod, `h0:8` of MPICH, `h0` a line of torchrun's wrappers and Slurm; each host once."""
    found: list[str] = []
    for line in text.splitlines():
        words = line.partition("#")[0].replace(",", " ").split()
        for word in words[:1] if len(words) > 1 and any("=" in one for one in words[1:]) else words:
            name = re.sub(r":\d+$", "", word).rpartition("@")[2]
            found += expand(name)
    return list(dict.fromkeys(found))


def expand(listed: str) -> list[str]:
    """`node[0-2,7],gpu1` to single names; numbers keep their leading zeros."""
    found: list[str] = []
    for part in re.split(r",(?![^\[]*\])", listed):
        pieces = re.split(r"\[([^\]]*)\]", part.strip())
        choices = [[piece] if number % 2 == 0 else _numbers(piece) for number, piece in enumerate(pieces)]
        found += ["".join(combined) for combined in product(*choices) if "".join(combined)]
        if len(found) > _MOST:
            raise ValueError(f"{listed} names more than {_MOST} hosts")
    return found


def _numbers(ranges: str) -> list[str]:
    found: list[str] = []
    for part in ranges.split(","):
        first, mark, last = part.strip().partition("-")
        if not first.isdigit() or (mark and not last.isdigit()):
            raise ValueError(f"[{ranges}] is no list of numbers")
        span = range(int(first), int(last if mark else first) + 1)
        if len(span) > _MOST:
            raise ValueError(f"[{ranges}] names more than {_MOST} hosts")
        found += [str(number).zfill(len(first)) for number in span]
    return found
