"""Dumps read by what repeats in them say what the unpickler says, and nothing gets through that it would refuse."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phalanx.sources.traces import repeats
from phalanx.sources.traces.batch import Batch, TraceInput, read_batch
from phalanx.sources.traces.readers import flight_recorder
from phalanx.sources.traces.repeats import read_repeated
from tests.made_traces import bench_module

dump_bytes = bench_module("dump_bytes")
RECORDED = Path(__file__).parents[2] / "diagnosis" / "collective_analysis" / "recorded"
_NAMES = ["nccl:all_reduce", "nccl:send 0->1", "gloo:all_gather", "nccl:_all_gather_base", "odd name"]
_STATES = ["completed", "started", "scheduled"]
_COUNTS = (
    st.integers(0, 300) | st.integers(65_000, 66_000) | st.integers(2**31 - 3, 2**31 + 3) | st.integers(-5, 2**63 - 1)
)
_TIMES = st.integers(1_758_610_000_000_000_000, 1_758_619_999_999_999_999)
_SIZES = st.sampled_from([[[4]], [[4096, 1, 5120]], [[2], [70_000]], [], [[]]])
_FRAME = st.builds(
    lambda name, line: dump_bytes.Frame(name, f"/home/user/job/{name}.py", line),
    st.sampled_from(["train", "step", "u}(h"]),
    st.integers(1, 3),
)


@st.composite
def entries(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Entries of a few kinds in many turns, each with numbers of its own."""
    kinds = draw(st.lists(st.fixed_dictionaries({
        "frames": st.lists(_FRAME, max_size=3), "pg_id": st.integers(0, 2), "process_group": st.sampled_from([("0", "default_pg"), ("7", "DATA")]),
        "profiling_name": st.sampled_from(_NAMES), "input_sizes": _SIZES, "output_sizes": _SIZES, "input_dtypes": st.just(["Float"]),
        "output_dtypes": st.sampled_from([["Float"], []]), "state": st.sampled_from(_STATES), "retired": st.booleans(), "is_p2p": st.booleans(),
    }), min_size=1, max_size=4))  # fmt: skip
    rounds = draw(st.lists(st.integers(0, len(kinds) - 1), min_size=2, max_size=60))
    found = []
    for order, kind in enumerate(rounds * draw(st.integers(1, 4))):
        chosen = dict(kinds[kind])
        numbers = {
            "record_id": order + draw(st.sampled_from([0, 250])), "collective_seq_id": draw(_COUNTS), "p2p_seq_id": draw(st.integers(0, 2)),
            "op_id": draw(_COUNTS), "time_created_ns": draw(_TIMES),
        }  # fmt: skip
        if draw(st.booleans()):
            numbers["duration_ms"] = draw(st.floats(allow_nan=False))
        ended = chosen["state"] == "completed"
        times = {
            "time_discovered_started_ns": draw(_TIMES) if chosen["state"] != "scheduled" else None,
            "time_discovered_completed_ns": draw(_TIMES | st.integers(-2, 2)) if ended else None,
        }
        found.append({"frames": chosen.pop("frames")} | numbers | chosen | times)
    return found


def in_torchs_form(found: list[dict[str, Any]], last: dict[str, Any] | None = None) -> bytes:
    """The bytes that PyTorch would write for these entries, and what comes after them."""
    config = {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"},
        "7": {"name": "7", "desc": "DATA", "ranks": "[1]"},
    }
    whole = {"version": "2.10", "pg_config": config, "entries": found} | (last or {})
    return b"\x80\x02" + dump_bytes.encode(whole, dump_bytes.Memo()) + b"."


def both(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Batch, Batch]:
    """Read with and without the look at what repeats."""
    made = []
    for least in (0, 1 << 60):
        monkeypatch.setattr(flight_recorder, "_WORTH_LOOKING", least)
        made.append(read_batch([TraceInput("nccl_trace_rank_1", flight_recorder.NAME, data=data)], bounded=True))
    return made[0], made[1]


def assert_alike(quick: Batch, slow: Batch) -> None:
    words = pl.col(pl.Categorical).cast(pl.String)
    assert quick.frame().with_columns(words).rows() == slow.frame().with_columns(words).rows()
    assert (quick.files, quick.groups, quick.unchecked) == (slow.files, slow.groups, slow.unchecked)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(found=entries(), has_more=st.booleans())
def test_any_dump_in_torchs_form(found: list[dict[str, Any]], has_more: bool) -> None:
    data = in_torchs_form(found, {"host_name": "node0"} if has_more else None)
    with pytest.MonkeyPatch.context() as patch:
        assert_alike(*both(data, patch))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(found=entries(), protocol=st.integers(2, 5))
def test_pythons_own_pickles_go_the_other_way(found: list[dict[str, Any]], protocol: int) -> None:
    for one in found:
        one["frames"] = [
            {"name": frame.name, "filename": frame.filename, "line": frame.line} for frame in one["frames"]
        ]
    data = pickle.dumps({"version": "2.10", "entries": found}, protocol)
    with pytest.MonkeyPatch.context() as patch:
        assert_alike(*both(data, patch))


@pytest.mark.parametrize("folder", sorted(path.name for path in RECORDED.iterdir() if path.is_dir()))
def test_recorded_dumps(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in sorted((RECORDED / folder).iterdir()):
        data = path.read_bytes()
        assert_alike(*both(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, monkeypatch))


def made_dumps(tmp_path: Path, fault: str, flat: bool) -> list[bytes]:
    bench_module("make_traces").write_job(tmp_path / "dumps", 16, fault, entries=700, flat=flat)
    return [path.read_bytes() for path in sorted((tmp_path / "dumps").iterdir())]


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("fault", ["host-stall", "mismatch-shape"])
def test_large_dumps_are_read_by_what_repeats(
    fault: str, flat: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for data in made_dumps(tmp_path, fault, flat):
        found = read_repeated(data)
        assert found is not None
        assert len(found.rows["kind"]) == 700
        assert len(found.dump["entries"]) < 200
        assert_alike(*both(data, monkeypatch))


def test_the_third_of_equal_dumps_is_taken_in_runs_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also its start, where strings are numbered: the first dump shows such entries, the second that they come again."""
    monkeypatch.setattr(repeats, "_VOCABULARIES", {})
    data = made_dumps(tmp_path, "none", flat=True)[3]
    first, second = read_repeated(data), read_repeated(data)

    def refuse(*_: object) -> None:
        pytest.fail("an entry was looked at alone")

    monkeypatch.setattr(repeats._Reader, "_take", refuse)
    third = read_repeated(data)
    assert first == second == third is not None


def _class_in_an_entry(data: bytes) -> bytes:
    place = data.index(b"u}(", len(data) // 2)
    return data[:place] + b"X\x01\0\0\0acposix\nsystem\nX\x04\0\0\0true\x85R" + data[place:]


def _class_behind(data: bytes) -> bytes:
    return data[:-2] + b"X\x01\0\0\0acposix\nsystem\nX\x04\0\0\0true\x85Ru."


def _class_before(data: bytes) -> bytes:
    return data.replace(b"}(", b"}(X\x01\0\0\0acposix\nsystem\nX\x04\0\0\0true\x85R", 1)


@pytest.mark.parametrize("spoil", [_class_in_an_entry, _class_behind, _class_before])
def test_what_asks_for_a_class_is_refused(
    spoil: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumps = made_dumps(tmp_path, "none", True)
    assert read_repeated(dumps[0]) is not None  # what a good dump taught must not let a bad one through
    bad = spoil(dumps[0])
    assert read_repeated(bad) is None
    quick, slow = both(bad, monkeypatch)
    assert quick.files == slow.files == []
    assert "refused, nothing of it was run" in quick.unchecked[0][0]


def test_a_name_that_comes_twice_goes_the_other_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later value of a field holds, which the places of numbers do not tell."""
    data = made_dumps(tmp_path, "none", True)[0]
    field = b"X\x09\0\0\0record_idq"
    token = b"h" + data[data.index(field) + len(field) :][:1]
    place = data.rindex(b"u}(")
    twice = data[:place] + token + b"K\x07" + data[place:]
    assert read_repeated(twice) is None
    assert_alike(*both(twice, monkeypatch))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(place=st.integers(0, 1 << 20), junk=st.binary(min_size=1, max_size=6), cut=st.booleans())
def test_damaged_bytes_read_alike(made: bytes, place: int, junk: bytes, cut: bool) -> None:
    data = bytearray(made)
    place %= len(data)
    data[place : place + len(junk)] = junk
    if cut:
        del data[place + len(junk) :]
    with pytest.MonkeyPatch.context() as patch:
        assert_alike(*both(bytes(data), patch))


@pytest.fixture(scope="module")
def made() -> bytes:
    kinds = [
        {"record_id": n, "process_group": ("0", "default_pg"), "collective_seq_id": n + 1, "p2p_seq_id": 0,
         "profiling_name": _NAMES[n % 2], "time_created_ns": 1_758_610_000_000_000_000 + n, "input_sizes": [[4]], "state": "completed",
         "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": True, "is_p2p": n % 2 == 1}
        for n in range(40)
    ]  # fmt: skip
    data = in_torchs_form(kinds)
    assert read_repeated(data) is not None
    return data
