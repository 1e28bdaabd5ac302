"""PyTorch's profiler (Kineto): the collectives in the Chrome traces that `export_chrome_trace` and its handlers write.

{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 2, "world_size": 4, "pg_config":
   [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [0, 1, 2, 3]}]}, "baseTimeNanoseconds": 1790857026000000000,
 "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 3942347077394.378, "dur": 20.1, "args": {"Collective name":
   "allreduce", "dtype": "Float", "In msg nelems": 16, "Out msg nelems": 16, "Process Group Name": "0", "Seq": 7}},
  {"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "ts": 3942347077394.378, "dur": 2327.354, "args": {"Input Dims":
   [[[4, 4]], []], "Concrete Inputs": ["", "", "", "", "False", "-1"]}},
  {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "ts": 3942347077672.207, "dur": 4064.134, "args": {}}]}

NCCL's calls tell their group (`record_param_comms`). Gloo's do not: where a job has several groups, calls of one rank are then
not compared with those of another. The Gloo form was made on this project's machines, the NCCL form, not run on its
hardware, has the names of PyTorch's source.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from typing import Any

from phalanx.model.ranks import LARGEST_WORLD
from phalanx.model.trace import CallState
from phalanx.sources.traces.cut_json import load_cut_json
from phalanx.sources.traces.protocol import Group, RankTrace, UnreadableError

NAME = "kineto"
_OPS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "_allgather_base": "_all_gather_base", "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "_reduce_scatter_base", "alltoall": "all_to_all", "alltoall_base": "all_to_all", "broadcast": "broadcast",
    "reduce": "reduce", "gather": "gather", "scatter": "scatter", "barrier": "barrier", "monitored_barrier": "monitored_barrier",
    "send": "send", "recv": "recv", "recv_any_source": "recv", "allreduce_coalesced": "all_reduce_coalesced",
    "allgather_into_tensor_coalesced": "all_gather_coalesced", "reduce_scatter_tensor_coalesced": "reduce_scatter_coalesced",
}  # fmt: skip
_P2P = ("send", "recv")
_ROOT_PLACE = {"broadcast": 2, "reduce": 3}  # among the operator's inputs: as a rank within the group
_NO_CALLS = ("wait", "init", "startcoalescing", "endcoalescing")


def recognises(name: str, head: bytes) -> bool:
    """A profiler's trace begins with its schema's version."""
    return (head.lstrip()[:1] == b"{" and b'"schemaVersion"' in head and b"traceEvents" in head) or (
        b'"schemaVersion"' in head and (b'"deviceProperties"' in head or b'"distributedInfo"' in head)
    )  # fmt: skip


def read(name: str, data: bytes) -> Iterator[RankTrace]:
    """The calls of the one rank that was profiled."""
    trace, truncated = _load(data)
    info = trace.get("distributedInfo") if isinstance(trace.get("distributedInfo"), dict) else {}
    assert isinstance(info, dict)
    events = [one for one in trace.get("traceEvents", []) if isinstance(one, dict) and one.get("ph") == "X"]
    events.sort(key=lambda one: one.get("ts", 0))
    groups = _groups(info)
    base = int(trace.get("baseTimeNanoseconds") or 0)
    named = [one for one in events if one.get("name") == "record_param_comms" and _collective(one) not in _NO_CALLS]
    plain = [one for one in events if str(one.get("name", "")).startswith("c10d::")]
    if not named and not plain:
        raise UnreadableError("it holds no collectives", "a trace of a distributed job with ProfilerActivity.CPU")
    rank = info.get("rank")
    notes = []
    if named:
        columns = _of_nccl(named, events, groups, base)
    else:
        known = groups[0] if len(groups) == 1 else Group("?", "calls of unknown groups", (int(rank),) if rank is not None else None)  # fmt: skip
        if len(groups) != 1:
            text = f"{name}: the profiler does not tell to which of the {len(groups)} groups a Gloo call belongs"
            notes.append((text, "flight-recorder dumps (TORCH_NCCL_TRACE_BUFFER_SIZE)"))
        groups = [known]
        columns = _of_gloo(plain, events, base)
    yield RankTrace(
        form=NAME, rank=int(rank) if rank is not None else None, groups=groups, columns=columns, truncated=truncated,
        host=str(trace["host_name"]) if trace.get("host_name") else None, world_size=_world_size(info), notes=notes,
    )  # fmt: skip


def _world_size(info: dict[str, Any]) -> int | None:
    stated = info.get("world_size")
    return stated if type(stated) is int and 0 < stated <= LARGEST_WORLD else None


def _load(data: bytes) -> tuple[dict[str, Any], bool]:
    try:
        found, is_cut = load_cut_json(data.decode("utf-8", "replace"), "]}")
    except ValueError:
        raise UnreadableError("it is not JSON") from None
    return (found if isinstance(found, dict) else {}), is_cut


def _groups(info: dict[str, Any]) -> list[Group]:
    found = []
    for one in info.get("pg_config") or []:
        if isinstance(one, dict):
            members = _members(one.get("ranks"))
            found.append(Group(str(one.get("pg_name", "")), str(one.get("pg_desc", "")), members))
    return found


def _members(ranks: object) -> tuple[int, ...] | None:
    """A list, or one as text; None where it is cut short (`[0, 1, ..., 63]`, for groups of more than 30)."""
    if isinstance(ranks, str):
        try:
            ranks = json.loads(ranks)
        except (ValueError, RecursionError):
            return None
    is_list = isinstance(ranks, list) and all(isinstance(rank, int) for rank in ranks)
    return tuple(ranks) if is_list else None  # type: ignore[arg-type]


def _collective(event: dict[str, Any]) -> str:
    known = event.get("args")
    return str(known.get("Collective name", "")).lower() if isinstance(known, dict) else ""


def _plain_op(name: str) -> str:
    short = name.removeprefix("c10d::").rstrip("_")
    return _OPS.get(short, short)


def _nanoseconds(event: dict[str, Any], base: int, end: bool = False) -> int:
    return base + round((float(event.get("ts", 0)) + (float(event.get("dur", 0)) if end else 0.0)) * 1000)


def _of_nccl(named: list[dict[str, Any]], events: list[dict[str, Any]], groups: list[Group], base: int) -> dict[str, list[Any]]:  # fmt: skip
    """Calls with their groups; kernels of the same group in the same order tell when they ran."""
    places = {group.name: number for number, group in enumerate(groups)}
    kernels: defaultdict[str, deque[dict[str, Any]]] = defaultdict(deque)
    for event in events:
        if event.get("cat") == "kernel" and str(event.get("name", "")).startswith("nccl") and isinstance(event.get("args"), dict):  # fmt: skip
            kernels[str(event["args"].get("Process Group Name", ""))].append(event)
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    counts: Counter[tuple[int, bool]] = Counter()
    for event in named:
        facts = event["args"]
        pg = str(facts.get("Process Group Name", ""))
        if pg not in places:
            places[pg] = len(groups)
            description = str(facts.get("Process Group Description", ""))
            groups.append(Group(pg, description, _members(facts.get("Process Group Ranks"))))
        op = _OPS.get(_collective(event), _collective(event))
        p2p = op in _P2P
        counts[places[pg], p2p] += 1
        peer = facts.get("Dst Rank" if op == "send" else "Src Rank") if p2p else None
        kernel = kernels[pg].popleft() if kernels[pg] else None
        _add(
            columns, group=places[pg], seq=int(facts.get("Seq", counts[places[pg], p2p])), p2p=p2p, op=op, peer=peer,
            shape=f"[{facts.get('In msg nelems', '?')}]>[{facts.get('Out msg nelems', '?')}]", dtype=facts.get("dtype"),
            created_ns=_nanoseconds(event, base), started_ns=_nanoseconds(kernel, base) if kernel else None,
            completed_ns=_nanoseconds(kernel, base, end=True) if kernel else None,
        )  # fmt: skip
    return columns


def _of_gloo(plain: list[dict[str, Any]], events: list[dict[str, Any]], base: int) -> dict[str, list[Any]]:
    """Calls in the order of the program; Gloo's own threads tell, kind by kind, when they ran."""
    runs: defaultdict[str, deque[dict[str, Any]]] = defaultdict(deque)
    for event in events:
        if str(event.get("name", "")).startswith("gloo:"):
            runs[str(event["name"]).removeprefix("gloo:")].append(event)
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    counts: Counter[bool] = Counter()
    for event in plain:
        op = _plain_op(str(event["name"]))
        p2p = op in _P2P
        counts[p2p] += 1
        facts = event.get("args") if isinstance(event.get("args"), dict) else {}
        assert isinstance(facts, dict)
        inputs = facts.get("Concrete Inputs") or []
        run = runs[op].popleft() if runs[op] else None
        _add(
            columns, group=0, seq=counts[p2p], p2p=p2p, op=op, peer=_number(inputs, 2) if p2p else None,
            root=_number(inputs, _ROOT_PLACE[op]) if op in _ROOT_PLACE else None, shape=_dims(facts.get("Input Dims")),
            dtype=None, created_ns=_nanoseconds(event, base), started_ns=_nanoseconds(run, base) if run else None,
            completed_ns=_nanoseconds(run, base, end=True) if run else _nanoseconds(event, base, end=True),
        )  # fmt: skip
    return columns


_COLUMNS = ("group", "seq", "p2p", "op", "peer", "root", "shape", "dtype", "state", "created_ns", "started_ns", "completed_ns")  # fmt: skip


def _add(columns: dict[str, list[Any]], **values: Any) -> None:
    values.setdefault("state", int(CallState.COMPLETED))
    for name in _COLUMNS:
        columns[name].append(values.get(name))


def _number(inputs: list[Any], place: int) -> int | None:
    text = str(inputs[place]) if len(inputs) > place else ""
    return int(text) if text.isdigit() else None


def _dims(dims: Any) -> str | None:
    """The sizes of the tensors, which stand in lists of their own among the operator's inputs."""
    lists = [one for one in dims or [] if one and isinstance(one[0], list)] if isinstance(dims, list) else []
    return f"{lists[0]}>" if lists else None
