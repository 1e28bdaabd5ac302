"""NCCL Inspector (NCCL 2.28 and later): one JSON object for each collective that ended, a file for each process.

{"header": {"id": "0x7f8c496ae9f661", "rank": 2, "n_ranks": 8, "nnodes": 1},
 "metadata": {"inspector_output_format_version": "v4.0", "dump_timestamp_us": 1748030377748202, "hostname": "gpu-07", "pid": 1639453},
 "coll_perf": {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 17179869184, "coll_exec_time_us": 61974}}

Only ended collectives are written, so it tells who comes late, never who is missing. NCCL's documentation of the plugin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from phalanx.model.ranks import LARGEST_WORLD
from phalanx.model.trace import CallState
from phalanx.sources.traces.protocol import Group, RankTrace, UnreadableError

NAME = "nccl inspector"
_OPS = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
}


def recognises(name: str, head: bytes) -> bool:
    """The keys of its first object."""
    return head.lstrip()[:1] == b"{" and b'"inspector_output_format_version"' in head


def read(name: str, data: bytes) -> Iterator[RankTrace]:
    """The collectives of one process, each with the time for which it ran on the GPU."""
    records, is_cut = _records(data.decode("utf-8", "replace"))
    if not records:
        raise UnreadableError("it tells of no collective", "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS set, too")
    # The communicator of most ranks is the job's: its ranks are the job's ranks.
    widest = max((one["header"] for one in records), key=lambda header: int(header["n_ranks"]))
    size = int(widest["n_ranks"])
    if not 0 < size <= LARGEST_WORLD:
        raise UnreadableError(f"a communicator of {size} ranks")
    groups: dict[tuple[str, str], int] = {}
    members: list[Group] = []
    columns: dict[str, list[Any]] = {
        key: [] for key in ("group", "seq", "op", "state", "created_ns", "started_ns", "completed_ns")
    }
    for one in sorted(records, key=lambda record: int(record["metadata"]["dump_timestamp_us"])):
        header, call = one["header"], one["coll_perf"]
        key = (str(header["id"]), str(call["coll"]))
        if key not in groups:
            groups[key] = len(members)
            everyone = tuple(range(size)) if int(header["n_ranks"]) == size else None
            members.append(Group(" ".join(key), "", everyone))
        ended, began = _times(one)
        row = (
            groups[key],
            int(call["coll_sn"]),
            _OPS.get(key[1], key[1]),
            int(CallState.COMPLETED),
            began,
            began,
            ended,
        )
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    yield RankTrace(
        form=NAME,
        rank=int(widest["rank"]),
        groups=members,
        columns=columns,
        host=str(records[0]["metadata"].get("hostname") or "") or None,
        world_size=size,
        truncated=is_cut,
    )


def _times(record: dict[str, Any]) -> tuple[int, int]:
    """End and beginning on the GPU, in nanoseconds: by the kernel's own marks where the file is verbose, else by when it was written."""
    call = record["coll_perf"]
    kernels = (call.get("event_trace_ts") or {}).get("kernel_events") or ()
    stops = [int(one["kernel_stop_ts"]) for one in kernels if one.get("kernel_stop_ts")]
    ended = max(stops) if stops else int(record["metadata"]["dump_timestamp_us"])
    return ended * 1000, (ended - int(call["coll_exec_time_us"])) * 1000


def _records(text: str) -> tuple[list[dict[str, Any]], bool]:
    """Every whole record with a collective, and whether the file breaks off: a killed process leaves half a line."""
    decoder, place = json.JSONDecoder(), 0
    found: list[dict[str, Any]] = []
    while (place := text.find("{", place)) >= 0:
        try:
            record, place = decoder.raw_decode(text, place)
        except ValueError:
            return found, True
        if isinstance(record, dict) and "coll_perf" in record and "header" in record and "metadata" in record:
            found.append(record)
    return found, False
