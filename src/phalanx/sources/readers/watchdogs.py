"""What PyTorch's NCCL watchdog says of a collective that timed out: which call of which group, how long, how far the rank was.

[rank5]:[E… ProcessGroupNCCL.cpp:629] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.
[rank5]:[E… ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank 5]  failure detected by watchdog at work sequence id: 812 PG status: last enqueued work: 813, last completed work: 811
[rank3]:[E… ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal … Last enqueued NCCL work: 811, last completed NCCL work: 811.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.window import Window

TRIGGERS = (
    "Watchdog caught collective operation timeout",
    "Received a dump signal due to a collective timeout",
    "ProcessGroupNCCL initialization options: size: ",
)

# Sent by a heartbeat monitor for the whole process: its numbers are those of the default group.
DUMP = "nccl-dump-signal"
GROUP = "nccl-process-group"
_MADE = re.compile(r"initialization options: size: (?P<size>\d{1,6}), global rank: (?P<rank>\d{1,6})\b")
_WORK = re.compile(
    r"WorkNCCL\((?:SeqNum=(?P<seq>\d+), )?OpType=(?P<op>\w+)"
    r"(?:(?:, NumelIn=(?P<numel_in>\d+), NumelOut=(?P<numel_out>\d+))?.{0,80}?Timeout\(ms\)=(?P<timeout>\d+)"
    r"(?:\) ran for (?P<ran>\d+) milliseconds)?)?"
)
# The same words again, in the exception that ends the process.
_REPEATED = re.compile(r"terminated with exception: |what\(\):|Error: \[Rank")
_WITHIN_GROUP = re.compile(r"\[Rank (?P<rank>\d+)\] Watchdog caught")
_GROUP = re.compile(r"\[PG (?:ID (?P<id>\d+) PG GUID )?(?P<uid>\w+) ?(?:\((?P<name>[^)]*)\))? Rank (?P<rank>\d+)\]")
_STATUS = re.compile(
    r"at (?:NCCL )?work(?: sequence id)?: (?P<seq>\d+).{0,20}?"
    r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), last completed (?:NCCL )?work: (?P<completed>-?\d+)"
)
_DUMP = re.compile(r"Last enqueued NCCL work: (?P<enqueued>-?\d+), last completed NCCL work: (?P<completed>-?\d+)")
_NEAR = 12  # lines of the same rank in which the numbers of the group follow
_NEVER = 1 << 31  # older releases print an uninitialised number for "none yet"


def read(window: Window) -> Iterator[Event]:
    """A time-out of this rank with all that is said of it, or the numbers of a rank that another's time-out made speak."""
    text = window.text
    if _REPEATED.search(text):
        return
    if "Received a dump signal" in text:
        if numbers := _DUMP.search(text):
            data = {"group": _group_of(text) or "0", **_numbers(numbers)}
            yield window.event(EventKind.STALL, DUMP, data=data)
        return
    if made := _MADE.search(text):
        if (group := _GROUP.search(text)) is not None:
            place = {"group": group["uid"], "group_rank": int(group["rank"]), "group_size": int(made["size"])}
            yield window.event(EventKind.LINE, GROUP, data={**place, "rank": int(made["rank"])})
        return
    work = _WORK.search(text)
    if work is not None:
        yield window.event(EventKind.TIMEOUT, "nccl-watchdog", data=_announced(window, work))


def _announced(window: Window, work: re.Match[str]) -> dict[str, object]:
    told = work.groupdict()
    data: dict[str, object] = {"op": work["op"]}
    if told["seq"]:
        data["seq"] = int(told["seq"])
    if told.get("numel_in"):
        data["sizes"] = f"{told['numel_in']} in, {told['numel_out']} out"
        if told["op"] in ("_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"):  # each rank has its share of the whole
            share, whole = sorted((int(told["numel_in"]), int(told["numel_out"])))
            data |= {"group_size": whole // share} if share and whole % share == 0 else {}
    if told.get("timeout"):
        data["timeout_s"] = int(told["timeout"]) / 1000
    if told.get("ran"):
        data["waited_s"] = int(told["ran"]) / 1000
    for _, line in window.following(_NEAR):
        if (status := _STATUS.search(line)) is not None:
            if status["seq"] == told["seq"]:
                data["group"] = _group_of(line)
                data |= _numbers(status)
                if (group := _GROUP.search(line)) is not None:
                    data["group_rank"] = int(group["rank"])
            return data
        if "Watchdog caught" in line:
            break
    within = _WITHIN_GROUP.search(window.text)
    if within is not None and window.speaker.rank not in (None, int(within["rank"])):
        # A group of some ranks, and nothing says which: its numbers are compared with nobody's.
        data["group"] = f"of rank {window.speaker.rank}"
    return data


def _group_of(line: str) -> str:
    match = _GROUP.search(line)
    return match["uid"] if match is not None else ""


def _numbers(match: re.Match[str]) -> dict[str, object]:
    found = {"last_enqueued": int(match["enqueued"]), "last_completed": int(match["completed"])}
    return {name: number for name, number in found.items() if number < _NEVER}
