"""Puts together what the job was: its size, ranks, hosts, framework and launcher."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from phalanx.frameworks import load_frameworks, recognise
from phalanx.frameworks.launchers import LAUNCHERS, recognise_launcher
from phalanx.model import EventKind, Host, Rank, World
from phalanx.model.ranks import LARGEST_WORLD
from phalanx.sources import Observations
from phalanx.sources.readers.communicators import WORKER
from phalanx.sources.readers.exits import CLOSING
from phalanx.sources.survey import RankSurvey

# What shows that the ranks had found one another, whatever happened then.
CONNECTED = "connected"
_CONNECTED = re.compile(
    r"\b[Rr]ank:? ?\d+ ?(?:of|/) ?\d+|replicas in sync|Init COMPLETE|[Ii]nitialized process group|\bworld[ _]size ?[:=]? ?\d"
    r"|Coordination agent has successfully connected|All distributed processes registered|process group (?:is )?(?:initialized|ready)"
)
SIGNS = {name: framework.SIGNS for name, framework in load_frameworks().items()} | LAUNCHERS | {CONNECTED: _CONNECTED}


def build_world(seen: Observations) -> World:
    """The world as the observations show it; what they do not show stays unknown."""
    signs: Counter[str] = Counter()
    entries: dict[int, list[RankSurvey]] = defaultdict(list)
    files: dict[int, list[str]] = defaultdict(list)
    hosts: dict[int, str] = {}
    sizes: Counter[int] = Counter()
    # What people write beside logs, in a README say, does not tell what the job was.
    for file in [file for file in seen.files if file.has_output] or seen.files:
        signs.update(file.signs)
        sizes.update(file.world_sizes)
        hosts.update(file.hosts)
        if file.rank is not None:
            files[file.rank].append(file.name)
        for number, entry in file.ranks.items():
            if number is not None:
                entries[number].append(entry)
                files[number].append(file.name)
    codes: dict[int, int] = {}
    for event in seen.events:
        if event.kind is EventKind.EXIT and event.rank is not None:
            codes.setdefault(event.rank, int(event.data["code"]))
            if event.host:
                hosts.setdefault(event.rank, event.host)
    started = {int(event.data["rank"]) for event in seen.events if event.source == WORKER}
    sizes.update(_workers_of_agent(seen))
    numbers = sorted({n for n in (entries.keys() | files.keys() | codes.keys() | started) if n < LARGEST_WORLD})
    ranks = tuple(_rank(number, entries[number], files[number], hosts, codes) for number in numbers)
    by_host: dict[str, list[int]] = defaultdict(list)
    for number, host in sorted(hosts.items()):
        by_host[host].append(number)
    return World(
        size=_size(sizes, numbers),
        framework=recognise(signs),
        launcher=recognise_launcher(signs),
        hosts=tuple(Host(name, tuple(ranks_of)) for name, ranks_of in sorted(by_host.items())),
        ranks=ranks,
    )


def _workers_of_agent(seen: Observations) -> list[int]:
    """How many workers torchrun had on its only node: those that its summary lists, and those that it ended because they still ran."""
    exits = [event for event in seen.events if event.kind is EventKind.EXIT]
    nodes = {
        (event.data.get("host"), (event.rank or 0) - event.data["local"]) for event in exits if "local" in event.data
    }
    agents = sum("failed (exitcode: " in event.text for event in exits)  # one for each attempt
    if len(nodes) != 1 or agents != 1 or next(iter(nodes))[1] != 0:
        return []
    listed = {event.data["pid"] for event in exits if "local" in event.data}
    return [len(listed | {event.data["pid"] for event in seen.events if event.source == CLOSING})]


def _size(stated: Counter[int], numbers: list[int]) -> int | None:
    """What the job says of its own size, unless it has more ranks than that."""
    least = max(numbers, default=-1) + 1
    fitting = {size: count for size, count in stated.items() if size >= least}
    if fitting:
        return max(fitting, key=lambda size: (fitting[size], size))
    return least if least >= 2 else None


def _rank(
    number: int, entries: list[RankSurvey], files: list[str], hosts: dict[int, str], codes: dict[int, int]
) -> Rank:
    positions = [entry.position for entry in entries if entry.position is not None]
    last = max(entries, key=lambda entry: entry.last_line, default=None)
    position = max(positions, default=None)
    return Rank(
        number=number,
        host=hosts.get(number),
        files=tuple(dict.fromkeys(files)),
        last_step=None if position is None else float(position[1] if position[1] >= 0 else position[0]),
        last_line=last.last_text if last else "",
        exit_code=codes.get(number),
        finished=any(entry.finished for entry in entries),
    )
