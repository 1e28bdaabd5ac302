"""Each node's own launch command, where they differ: `--each 'node0: torchrun --node-rank 0 …'`, or a file of such lines."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from phalanx.preflight.launch_line import LaunchLine, read_launch_line


def node_commands(given: Sequence[str], hosts: Sequence[str]) -> tuple[dict[str, LaunchLine], list[str]]:
    """By host, the command that will start the job there; and what is left of `--each`, which is how to reach hosts.

    Raises ValueError for a host that is not among those examined.
    """
    found: dict[str, LaunchLine] = {}
    rest: list[str] = []
    for entry in given:
        if entry.startswith("@"):
            lines = _lines(Path(entry[1:]))
        elif _is_command(entry, hosts):
            lines = [entry]
        else:
            rest.append(entry)
            continue
        for line in lines:
            host, mark, command = line.partition(":")
            if not mark or host.strip() not in hosts:
                raise ValueError(f"{line!r} does not begin with one of the hosts ({', '.join(hosts[:5])}) and a colon")
            found[host.strip()] = read_launch_line(shlex.split(command), own=True)
    return found, rest


def _is_command(entry: str, hosts: Sequence[str]) -> bool:
    host, mark, command = entry.partition(":")
    return bool(mark) and host.strip() in hosts and command.startswith(" ")


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
