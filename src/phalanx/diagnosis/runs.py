"""Several runs of a job: the last one is judged, the earlier ones are listed.

torchrun prints one summary for each node when it gives up, in which every rank stands once. A rank or a node that stands in a
second one has been started again by somebody else, who appended to the file. Where torchrun restarts ranks itself, `--log-dir` gets a folder
`attempt_1` beside `attempt_0`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from phalanx.model import Event, EventKind
from phalanx.model.ranks import name_ranks
from phalanx.sources import Observations

_ATTEMPT = re.compile(r"^(?P<log>(?:.*/)?)attempt_(?P<number>\d+)/")
_OF_AGENT = "failed (exitcode: "


def last_run(seen: Observations) -> tuple[Observations, tuple[str, ...]]:
    """What belongs to the last attempt and the last run of each file, and a line on each earlier one."""
    seen, restarted = _last_attempt(seen)
    ends: dict[str, int] = {}
    told: list[str] = []
    for file in seen.files:
        summaries = _summaries([event for event in seen.events if event.file == file.name])
        for summary in summaries[:-1]:
            ends[file.name] = summary[-1].line
            codes = ", ".join(sorted({str(event.data["code"]) for event in summary}))
            ranks = name_ranks(event.rank for event in summary if event.rank is not None)
            told.append(f"an earlier run in {file.name}, up to line {summary[-1].line}: {ranks} ended with {codes}")
    if not ends:
        return seen, restarted
    events = [event for event in seen.events if event.line > ends.get(event.file, -1)]
    matches = [match for match in seen.matches if match.event.line > ends.get(match.event.file, -1)]
    return replace(seen, events=events, matches=matches), (*restarted, *told)


def _last_attempt(seen: Observations) -> tuple[Observations, tuple[str, ...]]:
    """What the last of torchrun's attempts wrote. Of each earlier one an agent's console tells one exit, first of all."""
    of = {
        file.name: (found["log"], int(found["number"])) for file in seen.files if (found := _ATTEMPT.match(file.name))
    }
    last = {log: max(number for other, number in of.values() if other == log) for log, _ in of.values()}
    earlier = {name for name, (log, number) in of.items() if number < last[log]}
    if not earlier:
        return seen, ()
    told = sorted({f"an earlier attempt in {log}attempt_{number}" for log, number in of.values() if number < last[log]})
    files = [file for file in seen.files if file.name not in earlier]
    of_agents: dict[str, list[Event]] = defaultdict(list)
    for event in seen.events:
        if event.kind is EventKind.EXIT and event.file not in of and _OF_AGENT in event.text:
            of_agents[event.file].append(event)
    restarts = max(last.values())
    over = {id(event) for exits in of_agents.values() for event in sorted(exits, key=lambda one: one.line)[:restarts]}
    events = [event for event in seen.events if event.file not in earlier and id(event) not in over]
    matches = [match for match in seen.matches if match.event.file not in earlier]
    return replace(seen, files=files, events=events, matches=matches), tuple(told)


def _summaries(events: Sequence[Event]) -> list[list[Event]]:
    """The exits of each of a launcher's summaries, which tell the time of each."""
    found: list[list[Event]] = []
    exits = [event for event in events if event.kind is EventKind.EXIT and event.data.get("at") is not None]
    told = {event.data.get("pid"): event.line for event in events if _OF_AGENT in event.text}
    begun: dict[object, int] = {}  # by node, where its agent told the failure that a summary followed
    for event in exits:
        if event.data.get("pid") in told:
            begun[_node_of(event)] = max(begun.get(_node_of(event), 0), told[event.data.get("pid")])
    for event in sorted(exits, key=lambda one: one.line):
        if not found or any(_is_of_later_run(event, other, begun) for other in found[-1]):
            found.append([])
        found[-1].append(event)
    return found


def _is_of_later_run(event: Event, other: Event, begun: Mapping[object, int]) -> bool:
    """The same rank again; or the same node, whose agent told of another failure in between."""
    node = _node_of(event)
    return event.rank == other.rank or (node == _node_of(other) and other.line < begun.get(node, 0) < event.line)


def _node_of(event: Event) -> object:
    """Where the ranks of a node begin, and its host: two nodes of one job differ in it."""
    return event.data.get("host"), (event.rank or 0) - int(event.data.get("local", 0))
