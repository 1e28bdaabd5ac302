"""Ring and light recordings of real jobs: what is written when, and replays that begin at a checkpoint."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from .jobs import Done, record, replay
from .test_divergence import prepare

pytestmark = [
    pytest.mark.job,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]


def lines(done: Done, rank: int, kind: str) -> list[dict[str, Any]]:
    text = (done.rank(rank) / "record" / "calls.jsonl").read_text()
    return [line for line in map(json.loads, text.splitlines()) if line["k"] == kind]


def test_a_ring_is_written_at_a_value_that_is_not_finite_and_replays_from_its_snapshot(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    done = record(folder, "ring", 2, "nan", "9", options=("--record-steps", "2"))
    assert done.status == 0, done.err
    assert "not finite" in lines(done, 1, "written")[0]["why"]
    refused = replay(folder, "bundle", "--rank", "1")
    assert refused.status == 2
    assert "fractions.Fraction" in refused.err
    assert "--trust-objects" in refused.err
    again = replay(folder, "bundle", "--rank", "1", "--trust-objects")
    assert again.status == 0, again.out + again.err
    assert "[same, bitwise]" in again.out
    assert "are passed over" in again.err
    said = (done.rank(1) / "output.log").read_text().splitlines()
    for line in said[-2:]:
        assert line in again.out


def test_a_ring_is_written_when_asked_for_while_the_job_runs(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    done = record(folder, "ring", 2, "asked", "12", options=("--record-steps", "2"))
    assert done.status == 0, done.err
    assert [line["why"] for line in lines(done, 0, "written")] == ["asked for", "the rank ended"]
    first = lines(done, 0, "written")[0]
    assert 0 < first["bytes"] < 1_000_000


def test_a_light_recording_is_checked_by_the_whole_job_again(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    done = record(folder, "light", 2, options=("--checkpoint-every", "4"))
    assert done.status == 0, done.err
    assert not list(done.bundle.rglob("results-*"))
    alone = replay(folder, "bundle", "--rank", "1")
    assert alone.status == 2
    assert "--all" in alone.err
    found = replay(folder, "bundle", "--all", "--from", "6", "-f", "json").json()
    assert found["verdict"] == "same", found
    assert [one["compared"] for one in found["replays"]] == [6, 6]
    state = json.loads((done.rank(0) / "record" / "checkpoint-00000004" / "state.json").read_text())
    assert state["holds"]
    assert state["lacks"]


def test_a_rank_that_is_killed_is_told_apart_from_one_that_left_its_share(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    done = record(folder, "full", 2, "killed")
    assert done.status == 137
    found = replay(folder, "bundle", "--rank", "1", "-f", "json").json()
    assert found["verdict"] == "repeats", found
    assert "SIGKILL" in found["summary"]
    assert found["replays"][0]["step"] == 8


def test_a_full_disk_ends_the_recording_and_not_the_job(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    done = record(folder, "full", 2, "full-disk")
    assert done.status == 0, done.err
    assert done.err.count("rank 1: recording stopped") == 1, done.err
    assert "step 10 loss" in (done.rank(1) / "output.log").read_text()
