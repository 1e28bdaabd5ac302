"""Checkpoints of real jobs: what is told, when they are made, and rings that outlive their ranks."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from .jobs import record, replay
from .test_divergence import prepare
from .test_modes import lines

pytestmark = [
    pytest.mark.job,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]


def test_a_script_can_say_what_its_state_is(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    done = record(folder, "full", 2, "told", "9", options=("--checkpoint-every", "4"))
    assert done.status == 0, done.err
    state = done.rank(0) / "record" / "checkpoint-00000008"
    told = json.loads((state / "state.json").read_text())
    assert {name.split(".")[0] for name in told["values"]} == {"optimizer0", "schedule0"}
    header = (state / "tensors.safetensors").read_bytes()
    names = set(json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")]))
    assert "model0.module.0.weight" in names
    assert not any(name.startswith(("model1", "optimizer1")) for name in names)  # the decoy
    found = replay(folder, "bundle", "--rank", "1", "--from", "8", "-f", "json").json()
    assert found["verdict"] == "same", found
    assert found["replays"][0]["compared"] == 1


def test_checkpoints_by_the_clock_are_of_one_step_on_all_ranks(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    options = ("--checkpoint-every", "0", "--checkpoint-minutes", "0.02")
    done = record(folder, "light", 2, "slow", "26", options=options)
    assert done.status == 0, done.err
    steps = [sorted(path.name for path in (done.rank(rank) / "record").glob("checkpoint-*")) for rank in (0, 1)]
    assert steps[0]
    assert steps[0] == steps[1]
    # Behind the very last step there would be nothing to compare.
    last = max(step for name in steps[0] if (step := int(name.partition("-")[2])) < 26)
    found = replay(folder, "bundle", "--all", "--from", str(last), "-f", "json").json()
    assert found["verdict"] == "same", found
    assert all(one["compared"] <= 26 - last + 1 for one in found["replays"])


def test_a_ring_is_written_at_a_stall(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    options = ("--record-steps", "2", "--on-stall", "abort", "--stall-after", "5", "--stall-at-most", "90")
    done = record(folder, "ring", 2, "stands", options=options)
    assert done.status != 0
    for rank in (0, 1):
        assert lines(done, rank, "written"), f"rank {rank} wrote nothing"
    found = replay(folder, "bundle", "--rank", "0", "-f", "json").json()
    assert found["verdict"] == "same", found
    assert "never completed" in found["summary"]
    assert found["replays"][0]["compared"] >= 2
    assert found["replays"][0]["step"] == 7


def test_the_ring_of_a_rank_that_is_killed_is_saved(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    done = record(folder, "ring", 2, "killed", options=("--record-steps", "2"))
    assert done.status == 137
    assert [line["why"] for line in lines(done, 1, "written")] == ["saved after the rank had died"]
    found = replay(folder, "bundle", "--rank", "1", "-f", "json").json()
    assert found["verdict"] == "repeats", found
    assert "SIGKILL" in found["summary"]
    survivor = replay(folder, "bundle", "--rank", "0", "-f", "json").json()
    assert survivor["verdict"] == "same", survivor
    assert survivor["replays"][0]["compared"] >= 2


def test_it_works_without_a_compiler(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    done = record(folder, "ring", 2, "healthy", "5", options=("--record-steps", "2"), PHALANX_NO_COMPILER="1")
    assert done.status == 0, done.err
    found = replay(folder, "bundle", "--rank", "1", "-f", "json").json()  # by the compiled library: the same numbers
    assert found["verdict"] == "same", found
