"""Recordings compared call by call; these are written by the recorder's own journal, without a job."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from phalanx.replay.compare import Comparison, compare
from phalanx.replay.inside.phalanx_record.entries import share
from phalanx.replay.inside.phalanx_record.journal import Journal
from phalanx.replay.recordings import ReplayError, open_recording

COUNT = 2000  # elements: more than is kept whole by everybody


def made(
    folder: Path, size: int, values: list[float], ends: bool = True, shape: int = COUNT, odd: int | None = None
) -> Path:
    """A job in which every step reduces one tensor; its result is this value everywhere. All ranks hand in the same but an odd one."""
    for rank in range(size):
        journal = Journal(str(folder / "attempt0" / f"rank{rank}" / "record"))
        journal.meta(schema="phalanx.record/1", rank=rank, mode="full", **({"ended": 1.0} if ends else {}))
        journal.line("group", g="0", ranks=list(range(size)), name="all")
        for step, value in enumerate(values):
            data = struct.pack(f"<{shape}f", *[value] * shape)
            begin, end = share(len(data), rank, size)
            mark = f"{hash(value) & (1 << 64) - 1:016x}"
            facts = {"n": step, "q": step, "s": step, "op": "allreduce_", "g": "0", "shapes": [["float32", shape]]}
            given = mark if odd is None or rank == odd else f"{step:016x}"
            journal.line("call", **facts, line="train.py:9", **{"in": [given]})
            place = journal.tensor(str(step), data[begin:end])
            journal.line("done", n=step, out=[mark], at=place, share=[begin, end], of=len(data))
        journal.close()
    (folder / "manifest.json").write_text(json.dumps({"command": ["python", "train.py"], "size": size}))
    return folder


def compared(one: Path, other: Path) -> Comparison:
    return compare(open_recording(one), open_recording(other))


def test_with_another_number_of_ranks_values_are_compared(tmp_path: Path) -> None:
    two = made(tmp_path / "two", 2, [1.0, 2.0, 3.0])
    same = compared(two, made(tmp_path / "three", 3, [1.0, 2.0 + 1e-6, 3.0]))
    assert (same.parting, same.compared, same.fidelity) == (None, 3, "tolerance")
    other = compared(two, made(tmp_path / "four", 4, [1.0, 2.1, 3.0]))
    assert other.parting is not None
    assert (other.parting.step, other.parting.what) == (1, "result")
    assert other.parting.largest == pytest.approx(0.1, rel=1e-3)
    assert other.parting.relative == pytest.approx(0.05, rel=1e-3)


def test_nothing_in_common_is_not_called_agreement(tmp_path: Path) -> None:
    two = made(tmp_path / "two", 2, [1.0, 2.0])
    with pytest.raises(ReplayError, match="nothing in the two recordings can be compared"):
        compared(two, made(tmp_path / "three", 3, [1.0, 2.0], shape=COUNT + 2))


def test_a_longer_run_parts_where_the_other_ends_unless_that_was_killed(tmp_path: Path) -> None:
    short, long = made(tmp_path / "short", 2, [1.0]), made(tmp_path / "long", 2, [1.0, 2.0])
    for one, other in ((short, long), (long, short)):
        parting = compared(one, other).parting
        assert parting is not None
        assert (parting.what, parting.step) == ("length", 1)
    killed = made(tmp_path / "killed", 2, [1.0], ends=False)
    for one, other in ((killed, long), (long, killed)):
        found = compared(one, other)
        assert found.parting is None
        assert any("cut short at rank 0, 1" in note for note in found.notes)


def test_other_input_parts_the_runs(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one", 2, [1.0, 2.0, 3.0]), made(tmp_path / "other", 2, [1.0, 2.5, 3.5])
    found = compared(one, other)
    assert found.parting is not None
    assert (found.parting.what, found.parting.step, found.parting.rank) == ("input", 1, 0)
    assert found.parting.relative == pytest.approx(0.25)


def test_fingerprints_of_another_kind_are_refused(tmp_path: Path) -> None:
    one = made(tmp_path / "one", 2, [1.0])
    meta = one / "attempt0" / "rank0" / "record" / "meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "fingerprints": "words64"}))
    with pytest.raises(ReplayError, match="another release"):
        compared(one, one)


def test_the_rank_that_handed_in_something_else_is_named_and_not_who_received_it(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one", 3, [1.0, 2.0, 3.0], odd=1), made(tmp_path / "other", 3, [1.0, 2.5, 3.5], odd=1)
    found = compared(one, other)
    assert found.parting is not None
    assert (found.parting.what, found.parting.step, found.parting.rank) == ("input", 1, 1)
