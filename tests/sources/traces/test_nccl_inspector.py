"""NCCL Inspector's files: who comes late, by the GPU's own times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phalanx.api.verbs import diagnose
from phalanx.sources.traces.protocol import UnreadableError
from phalanx.sources.traces.readers import nccl_inspector

_RANKS, _CALLS = 4, 20


def _record(rank: int, number: int, ran_us: int) -> str:
    at = 1_748_030_377_748_202 + number * 100_000 + rank * 37
    metadata = {"inspector_output_format_version": "v4.0", "dump_timestamp_us": at, "hostname": "gpu-07", "pid": rank}
    call = {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 1 << 26, "coll_exec_time_us": ran_us}
    header = {"id": "0x7f8c", "rank": rank, "n_ranks": _RANKS, "nnodes": 1}
    return json.dumps({"header": header, "metadata": metadata, "coll_perf": call})


def _write(folder: Path, late: int | None) -> None:
    for rank in range(_RANKS):
        ran = 1_500 if late in (None, rank) else 9_500  # who comes first waits longest inside the call
        lines = [_record(rank, number, ran + number) for number in range(_CALLS)]
        (folder / f"gpu-07_{rank}.log").write_text("\n".join(lines) + "\n")


def test_the_rank_that_waits_least_is_late(tmp_path: Path) -> None:
    _write(tmp_path, late=2)
    verdict = diagnose(tmp_path).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("perf.low-efficiency", (2,))


def test_even_ranks_are_no_finding(tmp_path: Path) -> None:
    _write(tmp_path, late=None)
    assert diagnose(tmp_path).verdict is None


def test_what_a_killed_process_left_is_read() -> None:
    whole = _record(1, 0, 10) + "\n"
    (trace,) = nccl_inspector.read("x", (whole + _record(1, 1, 10)[:40]).encode())
    assert (trace.rank, trace.truncated, trace.columns["seq"], trace.host) == (1, True, [0], "gpu-07")
    assert nccl_inspector.recognises("x.log", whole.encode())


def test_a_file_without_collectives_says_so() -> None:
    with pytest.raises(UnreadableError):
        [*nccl_inspector.read("x", b'{"metadata": {"inspector_output_format_version": "v4.0"}}')]
