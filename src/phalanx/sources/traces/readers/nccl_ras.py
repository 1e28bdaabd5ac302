"""NCCL RAS (`ncclras`, NCCL 2.24 and later), as text and as JSON: how many operations each rank has launched, who is missing.

Job summary
===========
…
Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         8        16        16   RUNNING  MISMATCH
…
#0-0 (5e7a2c1f9b3d8e04) MISMATCH
  Communicator ranks have different AllReduce operation counts
  15 ranks have launched up to operation 1287
  Rank 11 has launched up to operation 1286 -- GPU 3 managed by process 41207 on node 10.1.0.2

{"nccl_version": "2.28.3", "communicators": [{"hash": "0x5e7a2c1f9b3d8e04", "size": 2, "ranks": [{"rank": 0, "host": "10.1.0.1",
  "pid": 41200, "cuda_dev": 0, "status": {"abort_flag": false}, "collective_counts": {"AllReduce": 1287}}], "missing_ranks":
  [{"rank": 1, "host": "10.1.0.2", "pid": 41207, "cuda_dev": 3, "status": {"unresponsive": true, "considered_dead": true}}]}]}

From NCCL's source and documentation; not run on the hardware it needs.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from phalanx.model.ranks import LARGEST_WORLD, name_ranks
from phalanx.model.trace import CallState
from phalanx.sources.traces.protocol import Group, RankTrace, UnreadableError

NAME = "nccl ras"
_OPS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast", "Reduce": "reduce", "SendRecv": "send/recv"}  # fmt: skip
_TABLE = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\d+)\s+[\d-]+\s+(\d+)\s+(\d+)\s+[A-Z]+\s+\S+\s*$")
_COMM = re.compile(r"^#(\d+)-\d+ \(([0-9a-f]+)\) (INCOMPLETE|MISMATCH|ERROR)")
_COUNTS = re.compile(r"Communicator ranks have different (\w+) operation counts")
_LAUNCHED = re.compile(
    r"^\s+(?:\d+ ranks have|Rank (\d+) has) (?:launched up to operation (\d+)|not launched any operations)"
)
_CROWD = -1  # stands for the ranks that the text does not list: the largest crowd, which it names first
_LISTED = re.compile(r"^\s+Rank (\d+) -- (.*)$")
_MISSING = re.compile(r"^\s+The missing ranks?: ([\d, -]+)$")  # NCCL 2.24; later releases list them
# NCCL 2.28 leaves out the comma before the status of a missing rank.
_NO_COMMA = re.compile(r'("nvml_dev": -?\d+)(?=\s+"status")')
_ALL_WELL = re.compile(rb"^ +\d+(?: +[\d-]+){5} +RUNNING +OK *$", re.MULTILINE)
_BEGINS = re.compile(r"^(?:NCCL version \S+ compiled with|Job summary$)", re.MULTILINE)
# A report is one moment of a job that may be running: while some ranks have launched an operation, others are about to.
_LEVEL = 1


@dataclass(slots=True)
class _Communicator:
    """One communicator: its size, what each of its ranks launched, and who did not answer. Ranks are its own."""

    name: str
    size: int
    counts: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    absent: set[int] = field(default_factory=set)
    places: dict[int, str] = field(default_factory=dict)  # of those who are absent, as far as it is told
    worlds: dict[int, int] = field(default_factory=dict)  # own rank → rank of the job
    hosts: dict[int, str] = field(default_factory=dict)


def recognises(name: str, head: bytes) -> bool:
    """The report's own headings, or the keys of its JSON."""
    if head.lstrip()[:1] == b"{":
        return b'"communicators"' in head and b'"nccl_version"' in head
    return b"Job summary\n===" in head and (b"NCCL version" in head or b"Communicators..." in head)


def read(name: str, data: bytes) -> Iterator[RankTrace]:
    """What the last report in the file tells of every rank that answered, and of two who did not move between them."""
    reports = [*_reports(data.decode("utf-8", "replace"))]
    known = reports[-1] if reports else []
    if not known and _ALL_WELL.search(data):
        raise UnreadableError(
            "all ranks answered and had launched the same operations when it was made",
            "a report made while the job hangs: if this one was, no rank is missing, and the network or a GPU has stopped",
        )
    if not known:
        raise UnreadableError("it tells of no communicator", "a report of a job that has made one")
    still = _unmoved(reports[-2], known) if len(reports) > 1 else set()
    world = max(known, key=lambda one: one.size)
    kept = [one for one in known if len(one.worlds) == one.size]
    notes = [
        (f"{name}: {text}", "a second report, a minute later, beside it: in a job that hangs it says the same")
        for text in _nearly_level(kept, still)
    ]
    if len(kept) < len(known):
        text = f"{name}: {len(known) - len(kept)} communicators whose ranks it does not tell apart by process"
        notes.append((text, "the report as JSON (`ncclras -f json`)"))
    groups, rows = _rows(kept, still)
    absent = {one.worlds[rank] for one in kept for rank in one.absent}
    places = {one.worlds[rank]: place for one in kept for rank, place in one.places.items()}
    gone = [(rank, places.get(rank, f"rank {rank}")) for rank in sorted(absent)]
    for rank in sorted(set(range(world.size)) - absent):
        own = rows.get(rank, [])
        columns = {key: [row[key] for row in own] for key in ("group", "seq", "op", "state")}
        host = next((one.hosts[r] for one in kept for r, w in one.worlds.items() if w == rank and r in one.hosts), None)
        yield RankTrace(
            form=NAME, rank=rank, groups=groups, columns=columns, host=host, world_size=world.size, gone=gone, notes=notes if rank == 0 else ()
        )  # fmt: skip


def _rows(
    known: list[_Communicator], still: set[tuple[str, str]]
) -> tuple[list[Group], dict[int, list[dict[str, Any]]]]:
    """A group for every communicator and kind of operation, since RAS numbers each kind apart, and each rank's last call in it."""
    groups: list[Group] = []
    rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for one in known:
        members = tuple(one.worlds[rank] for rank in sorted(one.worlds))
        for op, counts in one.counts.items():
            present = {rank: counts.get(rank, 0) for rank in one.worlds if rank not in one.absent}
            most = max(present.values(), default=0)
            if most == 0:
                continue
            level = 0 if (one.name, op) in still else _LEVEL
            behind = any(count < most - level for count in present.values()) or bool(one.absent)
            groups.append(Group(f"{one.name} {op}", "", members))
            for rank, count in present.items():
                # Those in front wait; those behind have done what they launched, as far as is known.
                is_level = count >= most - level
                state = CallState.STARTED if behind and is_level else CallState.COMPLETED
                if count or is_level:
                    number = most if is_level else count
                    row = {"group": len(groups) - 1, "seq": number, "op": _OPS.get(op, op), "state": int(state)}
                    rows[one.worlds[rank]].append(row)
    return groups, rows


def _nearly_level(known: list[_Communicator], still: set[tuple[str, str]]) -> Iterator[str]:
    """Who is so little behind that it proves nothing."""
    for one in known:
        for op, counts in one.counts.items():
            if (one.name, op) in still:
                continue
            present = {one.worlds[rank]: counts.get(rank, 0) for rank in one.worlds if rank not in one.absent}
            most = max(present.values(), default=0)
            few = sorted(rank for rank, count in present.items() if most - _LEVEL <= count < most)
            if few:
                yield f"{name_ranks(few)} {'is' if len(few) == 1 else 'are'} one {op} behind in {one.name}, as in a job that runs"


def _unmoved(before: list[_Communicator], now: list[_Communicator]) -> set[tuple[str, str]]:
    """Communicators and operations whose counts are the same in two reports: who is behind there is not about to come."""
    then = {one.name: one for one in before}
    return {
        (one.name, op)
        for one in now
        for op, counts in one.counts.items()
        if one.name in then and then[one.name].counts.get(op) == counts
    }


def _reports(text: str) -> Iterator[list[_Communicator]]:
    """Each report of a file: people append the second one to the first."""
    if not text.lstrip().startswith("{"):
        # A report begins with its version or, without it, with its first heading.
        begins = [found.start() for found in _BEGINS.finditer(text)]
        begins = [
            at for at, after in zip(begins, [*begins[1:], len(text)], strict=True) if "Communicators" in text[at:after]
        ]
        for at, after in zip([0, *begins[1:]], [*begins[1:], len(text)], strict=True):
            yield _of_text(text[at:after])
        return
    text = _NO_COMMA.sub(r"\1,", text)
    decoder, place = json.JSONDecoder(), 0
    while place < len(text) and (found := re.compile(r"\s*(?=\{)").match(text, place)):
        try:
            report, place = decoder.raw_decode(text, found.end())
        except ValueError as error:
            raise UnreadableError("its JSON breaks off or is damaged") from error
        yield _of_json(report)


def _of_json(report: dict[str, Any]) -> list[_Communicator]:
    raw = [one for one in report.get("communicators", []) if isinstance(one, dict)]
    found: list[_Communicator] = []
    processes: list[dict[int, tuple[Any, ...]]] = []
    for one in raw:
        made = _Communicator(str(one.get("hash", "?")), _possible(int(one.get("size", 0))))
        where: dict[int, tuple[Any, ...]] = {}
        for member in [*one.get("ranks", []), *one.get("missing_ranks", [])]:
            rank = int(member["rank"])
            where[rank] = (member.get("host"), member.get("pid"), member.get("cuda_dev"))
            made.hosts[rank] = str(member.get("host", ""))
            for op, count in (member.get("collective_counts") or {}).items():
                made.counts[op][rank] = int(count)
        for member in one.get("missing_ranks", []):
            made.absent.add(int(member["rank"]))
            made.places[int(member["rank"])] = (
                f"GPU {member.get('cuda_dev')} managed by process {member.get('pid')} on node {member.get('host')}"
            )
        found.append(made)
        processes.append(where)
    if found:
        largest = max(range(len(found)), key=lambda number: found[number].size)
        rank_of = {process: rank for rank, process in processes[largest].items()}
        for made, where in zip(found, processes, strict=True):
            made.worlds = {rank: rank_of[process] for rank, process in where.items() if process in rank_of}
    return found


def _of_text(text: str) -> list[_Communicator]:
    """The text lists odd ranks only: all others of a communicator have the count that most have."""
    sizes: dict[int, int] = {}
    total = 0
    found: dict[str, _Communicator] = {}
    current: _Communicator | None = None
    section, op, listed = "", "", None
    for line in text.splitlines():
        if row := _TABLE.match(line):
            sizes[int(row[1])] = _possible(int(row[4]))
            total = max(total, int(row[4]))
        elif head := _COMM.match(line):
            current = found.setdefault(head[2], _Communicator(head[2], sizes.get(int(head[1]), 0)))
            section, op, listed = head[3], "", None
        elif current is None:
            continue
        elif what := _COUNTS.search(line):
            op, listed = what[1], None
        elif (told := _LAUNCHED.match(line)) and op:
            listed = int(told[2] or 0) if told[1] is None else None
            current.counts[op].setdefault(int(told[1] or _CROWD), int(told[2] or 0))
        elif (missing := _MISSING.match(line)) and section == "INCOMPLETE":
            current.absent |= _ranks(missing[1])
        elif who := _LISTED.match(line):
            if section == "INCOMPLETE":
                current.absent.add(int(who[1]))
                current.places[int(who[1])] = who[2]
            elif op and listed is not None:
                current.counts[op][int(who[1])] = listed
    for made in found.values():
        _fill(made)
        if made.size == total:  # the communicator of all ranks numbers them as the job does
            made.worlds = {rank: rank for rank in range(made.size)}
    return list(found.values())


def _ranks(listed: str) -> set[int]:
    """`0-3, 7`."""
    pairs = [part.strip().partition("-") for part in listed.split(",") if part.strip()]
    return {rank for low, _, high in pairs for rank in range(int(low), min(int(high or low), LARGEST_WORLD) + 1)}


def _possible(size: int) -> int:
    if size > LARGEST_WORLD:
        raise UnreadableError(f"it tells of a communicator of {size} ranks")
    return size


def _fill(one: _Communicator) -> None:
    """Give ranks that the text does not list the largest crowd's count."""
    for counts in one.counts.values():
        usual = counts.pop(_CROWD, None)
        if usual is None:
            usual = Counter(counts.values()).most_common(1)[0][0] if counts else 0
        for rank in range(one.size):
            if rank not in one.absent:
                counts.setdefault(rank, usual)
