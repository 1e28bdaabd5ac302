"""The flight recorder's reader: every form and version, damaged files, and files that want to do harm."""

from __future__ import annotations

import gzip
import json
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phalanx.diagnosis import diagnose_paths
from phalanx.model.trace import CallState, Traces
from phalanx.sources import find_inputs
from phalanx.sources.traces import find_traces, read_traces
from phalanx.sources.traces.batch import TraceInput, rank_of_name, read_batch
from phalanx.sources.traces.readers import flight_recorder
from tests.diagnosis.collective_analysis.jobs import Call, entry, traces_of

RECORDED = Path(__file__).parents[2] / "diagnosis" / "collective_analysis" / "recorded"


def dump(**more: Any) -> dict[str, Any]:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    status = {"0": {"last_enqueued_collective": 2, "last_started_collective": -1, "last_completed_collective": 1}}
    entries = [entry(0, 0, 1, Call(0), True, 10**9), entry(1, 0, 2, Call(0), False, 10**9 + 1)]
    return {"version": "2.10", "pg_config": config, "pg_status": status, "entries": entries} | more


def one(data: bytes, name: str = "nccl_trace_rank_1") -> Traces:
    (job,) = traces_of({name: data})
    return job


def test_a_pickle_becomes_rows() -> None:
    job = one(pickle.dumps(dump(), 2))
    assert job.world_size == 2
    assert [(file.rank, file.form, file.calls) for file in job.files] == [(1, "flight recorder 2.10", 2)]
    rows = job.calls.select("rank", "order", "seq", "op", "shape", "dtype", "state", "created_ns").rows()
    assert rows == [
        (1, 0, 1, "all_reduce", "[[4]]>[[4]]", "Float>Float", CallState.COMPLETED, 10**9),
        (1, 1, 2, "all_reduce", "[[4]]>[[4]]", "Float>Float", CallState.SCHEDULED, 10**9 + 1),
    ]
    assert job.groups.rows() == [(0, "0", "default_pg", [0, 1])]
    assert job.status.rows() == [(1, 0, 2, -1, 1)]


def test_json_says_the_same() -> None:
    """JSON has numbers as text in the status, 0 for never, lists for tuples, and no stacks."""
    as_text = json.loads(json.dumps(dump()))
    for call in as_text["entries"]:
        del call["frames"]
        call["time_discovered_started_ns"] = call["time_discovered_started_ns"] or 0
        call["time_discovered_completed_ns"] = call["time_discovered_completed_ns"] or 0
    as_text["pg_status"]["0"] = {key: str(value) for key, value in as_text["pg_status"]["0"].items()}
    job, plain = one(json.dumps(as_text).encode(), "rank1.json"), one(pickle.dumps(dump(), 2))
    assert job.calls.rows() == plain.calls.rows()
    assert job.status.rows() == plain.status.rows()


def test_a_compressed_dump() -> None:
    assert one(gzip.compress(pickle.dumps(dump(), 2)), "nccl_trace_rank_1.gz").calls.height == 2


# What each version had, as PyTorch's source defines the keys: 2.2 has types and `is_p2p`, but no `pg_status`; 2.3 and 2.4 have it;
# 2.7 tells NCCL's version; 2.10 has `comm_lib_version` in its place, and threads. Before 2.2 one number counted all calls.
THREADS = ("thread_id", "thread_name")
OLDER: dict[str, dict[str, Any]] = {
    "2.0": {
        "drop": ["pg_status", "is_p2p", "timeout_ms", "input_dtypes", "output_dtypes", *THREADS],
        "seq": "seq_id",
        "group": "0",
    },
    "2.2": {"drop": ["pg_status", *THREADS]},
    "2.3": {"drop": THREADS},
    "2.4": {"drop": THREADS},
    "2.7": {"drop": THREADS, "with": {"nccl_version": "2.21.5"}},
    "2.10": {"drop": (), "with": {"comm_lib_version": "2.27.3"}},
}


@pytest.mark.parametrize("version", OLDER)
def test_older_versions_lack_keys(version: str) -> None:
    spec = OLDER[version]
    made = dump(version=version, **spec.get("with", {}))
    for call in made["entries"]:
        call |= {"thread_id": "140", "thread_name": "pt_autograd_0"}
        call[spec.get("seq", "collective_seq_id")] = call.pop("collective_seq_id")
        call["process_group"] = spec.get("group", ("0", "default_pg"))
        for key in spec["drop"]:
            call.pop(key, None)
    for key in spec["drop"]:
        made.pop(key, None)
    raw = pickle.dumps(made, 2)
    assert flight_recorder.recognises("anything", raw[:4096])
    job = one(raw)
    assert job.calls["seq"].to_list() == [1, 2]
    assert job.calls["op"].to_list() == ["all_reduce"] * 2
    assert job.files[0].form == f"flight recorder {version}"


def test_point_to_point_names_the_global_peer() -> None:
    made = dump()
    made["pg_config"]["7"] = {"name": "7", "desc": "pipe", "ranks": "[1, 5, 9]"}
    words = {
        "profiling_name": "nccl:recv 0<-2",
        "is_p2p": True,
        "p2p_seq_id": 4,
        "process_group": ("7", "pipe"),
        "pg_id": 3,
    }
    made["entries"].append(entry(2, 7, 9, Call(7), False, 5) | words)
    row = one(pickle.dumps(made, 2)).calls.filter(p2p=True)
    assert row.select("op", "peer", "seq").rows() == [("recv", 9, 4)]


def test_gloo_calls_are_over_when_they_are_retired() -> None:
    inputs, _ = find_inputs([str(RECORDED / "gloo-none")])
    (job,) = read_traces(find_traces(inputs)[0])
    assert set(job.calls["state"]) == {CallState.COMPLETED}
    assert job.world_size == 4
    assert any("gloo_job.py" in place for place in job.calls["place"].drop_nulls())


@pytest.mark.parametrize(
    ("name", "rank"),
    [("nccl_trace_rank_3", 3), ("x/_dump_12", 12), ("rank7.json", 7), ("comm_lib_trace_rank_0", 0), ("attempt0/rank3/collectives-1.json", 3), ("job2/rank_4/dump.pkl", 4), ("trace.json", None)],
)  # fmt: skip
def test_the_rank_is_told_by_the_name(name: str, rank: int | None) -> None:
    assert rank_of_name(name) == rank


def test_a_name_without_rank_is_said() -> None:
    (job,) = traces_of({"trace.pickle": pickle.dumps(dump(), 2)})
    assert not job.files
    assert "whose trace" in job.unchecked[0].what


# Hostile files.


class Harm:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_hostile_pickle_is_refused_and_not_run(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "dumps").mkdir()
    mark = tmp_path / "mark"
    (tmp_path / "dumps" / "nccl_trace_rank_0").write_bytes(pickle.dumps(dump(harm=Harm(mark)), protocol))
    report = diagnose_paths([str(tmp_path / "dumps")])
    assert not mark.exists()
    assert report.verdict is None
    assert any("refused, nothing of it was run" in item.what for item in report.not_checked)


def memory_bomb() -> bytes:
    return b"\x80\x02}X\x09\x00\x00\x00pg_config]r" + struct.pack("<I", 2**31) + b"s."


def nested(kind: bytes) -> bytes:
    """Lists or tuples that hold the one before twice: short to write, endless to print."""
    body = b"]q\x00"
    for number in range(60):
        pair = b"h" + bytes([number])
        body += (pair + pair + b"\x86" if kind == b"tuple" else b"](" + pair + pair + b"e") + b"q" + bytes([number + 1])
    return body


def test_memory_bombs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "nccl_trace_rank_0").write_bytes(memory_bomb())
    report = diagnose_paths([str(tmp_path)])
    assert any("more memory" in item.what for item in report.not_checked)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "key", ["process_group", "input_sizes", "input_dtypes", "profiling_name", "frames", "record_id", "state"]
)
@pytest.mark.parametrize("kind", [b"list", b"tuple"])
def test_nested_values_do_not_hang(key: str, kind: bytes) -> None:
    entry_of = b"}(X" + struct.pack("<I", len(key)) + key.encode() + nested(kind) + b"u"
    data = b"\x80\x02}(X\x07\x00\x00\x00entries](" + entry_of + b"eX\x09\x00\x00\x00pg_config}u."
    batch = read_batch([TraceInput("nccl_trace_rank_0", "flight recorder", data=data)], bounded=False)
    assert len(batch.files) + len(batch.unchecked) >= 1
    batch.frame()


def test_a_bomb_does_not_take_the_worker_down() -> None:
    """Read by the process with bounded memory, among a good file."""
    good = pickle.dumps(dump(), 2)
    code = """
import sys, json
from phalanx.sources.traces.pool import _Worker
from phalanx.sources.traces.batch import TraceInput
with _Worker() as worker:
    table = worker.ask([TraceInput(name, "flight recorder", name) for name in sys.argv[1:]])
    print(len(table.files), json.dumps(table.unchecked))
"""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number, data in enumerate((good, memory_bomb(), good)):
            path = Path(folder, f"nccl_trace_rank_{number}")
            path.write_bytes(data)
            names.append(str(path))
        done = subprocess.run(
            [sys.executable, "-c", code, *names], capture_output=True, text=True, timeout=200, check=False
        )
    assert done.stdout.startswith("2 "), done.stderr
    assert "more memory" in done.stdout


# Damaged files.


def torch_like() -> bytes:
    """A dump as PyTorch's own pickler writes it."""
    return (RECORDED / "nccl-16-ranks-gpu_error_1st" / "_dump_0").read_bytes()


def test_a_cut_dump_gives_what_it_has() -> None:
    whole = one(torch_like(), "_dump_0")
    cut = one(torch_like()[:-900], "_dump_0")
    assert 0 < cut.calls.height < whole.calls.height
    assert cut.files[0].truncated
    assert cut.calls.rows() == whole.calls.rows()[: cut.calls.height]
    assert any("cut short" in item.what for item in cut.unchecked)


def test_a_cut_json_gives_what_it_has() -> None:
    made = {"entries": [entry(n, 0, n + 1, Call(0), True, n + 1) for n in range(9)], "pg_config": {}, "version": "2.10"}
    text = json.dumps(made, separators=(",", ":")).encode()
    job = one(text[: len(text) // 2], "rank0.json")
    assert 0 < job.calls.height < 9
    assert job.files[0].truncated


def test_an_empty_and_a_foreign_file_are_said(tmp_path: Path) -> None:
    (tmp_path / "nccl_trace_rank_0").write_bytes(b"")
    (tmp_path / "nccl_trace_rank_1").write_bytes(pickle.dumps("hello", 2))
    report = diagnose_paths([str(tmp_path)])
    assert {item.what for item in report.not_checked} >= {
        "nccl_trace_rank_0: empty",
        "nccl_trace_rank_1: it is not a flight-recorder dump",
    }


def test_a_dump_that_only_begins_like_a_compressed_one_is_damaged_not_a_crash() -> None:
    data = b"\x28\xb5\x2f\xfd\x20\x00\x07 no frame of zstd"
    batch = read_batch([TraceInput("_dump_0", "flight recorder", data=data)], bounded=False)
    assert batch.unchecked


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(0, 5000), st.binary(max_size=8))
def test_mangled_dumps_never_crash(seed: int, place: int, junk: bytes) -> None:
    data = bytearray(torch_like())
    place %= len(data)
    data[place : place + len(junk)] = junk
    if seed % 3 == 0:
        del data[seed % len(data) :]
    batch = read_batch([TraceInput("_dump_0", "flight recorder", data=bytes(data))], bounded=False)
    batch.frame()


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["entries", "pg_config", "pg_status", "version", "0", "name", "ranks", "record_id", "process_group", "profiling_name", "input_sizes", "state", "frames"]), inner, max_size=5), max_leaves=30))  # fmt: skip
def test_any_plain_value_is_read_or_refused(value: Any) -> None:
    for data in (pickle.dumps(value, 2), json.dumps(value).encode()):
        batch = read_batch([TraceInput("rank0", flight_recorder.NAME, data=data)], bounded=False)
        batch.frame()


def test_the_size_of_the_world_that_a_dump_of_the_watch_states() -> None:
    """Gloo lists no members: without it a rank that left no dump would not be missed."""
    bare = dump(pg_config={"": {"name": "", "desc": "", "ranks": "[0, 1, 2, 3]"}}, rank=1)
    assert one(json.dumps(bare | {"world_size": 4}).encode(), "collectives-1.json").world_size == 4
    assert one(json.dumps(bare | {"world_size": -4}).encode(), "collectives-1.json").world_size is None
