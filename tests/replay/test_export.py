"""What a reproducer is made of: no job is run here, the recordings are written by the recorder's own journal."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from phalanx.replay.command import Command, command_of
from phalanx.replay.export import export
from phalanx.replay.inside.phalanx_record.entries import share
from phalanx.replay.inside.phalanx_record.journal import Journal
from phalanx.replay.inside.phalanx_record.records import Record
from phalanx.replay.record import lacks_steps
from phalanx.replay.recordings import Recording, open_recording

COUNT = 4000  # elements: more than is kept whole by everybody


def made(folder: Path, *command: str, ends: bool = True, states: tuple[int, ...] = (), steps: int = 12) -> Recording:
    """Two ranks that reduce one tensor a step, and use the files train.py, parts/part.py and, so it says, secrets.env."""
    bundle = folder / "bundle"
    for rank in range(2):
        journal = Journal(str(bundle / "attempt0" / f"rank{rank}" / "record"))
        sources = dict.fromkeys(("train.py", "parts/part.py", "secrets.env", "../outside.py"), "")
        end: dict[str, Any] = {"ended": 1.0, "steps": steps} if ends else {}
        journal.meta(schema="phalanx.record/1", rank=rank, mode="full", sources=sources, **end)
        journal.line("group", g="0", ranks=[0, 1], name="all")
        for step in range(steps):
            data = struct.pack(f"<{COUNT}f", *[float(step)] * COUNT)
            begin, until = share(len(data), rank, 2)
            facts = {"n": step, "q": step, "s": step, "op": "allreduce_", "g": "0", "shapes": [["float32", COUNT]]}
            journal.line("call", **facts, line="train.py:9", **{"in": ["1"]})
            place = journal.tensor(str(step), data[begin:until])
            journal.line("done", n=step, out=["1"], at=place, share=[begin, until], of=len(data))
            journal.line("step", s=step + 1, random={})
        for step in states:
            kept = Path(journal.folder) / f"checkpoint-{step:08d}"
            kept.mkdir()
            (kept / "state.json").write_text("{}")
            (kept / "tensors.safetensors").write_text("")
        journal.close()
    (bundle / "manifest.json").write_text(json.dumps({"command": ["python", *command], "size": 2}))
    return open_recording(bundle)


def sources_in(folder: Path) -> None:
    (folder / "parts").mkdir(parents=True)
    for name in ("train.py", "parts/part.py", "secrets.env", "../outside.py"):
        (folder / name).write_text("pass\n")


def written(
    recording: Recording, command: Command, target: Path, first: int | None = None
) -> tuple[dict[str, Any], Record]:
    export(recording, 1, command, target, first, None, [], False)
    facts = json.loads((target / "repro.json").read_text())
    assert (target / "script" / facts["command"][0]).is_file()
    assert (target / "script" / facts["sources"] / "train.py").is_file()
    assert not list(target.rglob("secrets.env")), "a bundle may name any file of the user's"
    assert not list(target.rglob("outside.py"))
    return facts, Record(str(target / "recording" / "rank1" / "record"))


def test_a_script_in_a_subfolder_keeps_its_place(tmp_path: Path) -> None:
    sources_in(tmp_path / "scripts")
    recording = made(tmp_path, "scripts/train.py", "--lr", "1")
    facts, _ = written(recording, command_of(recording, tmp_path, None, None, None), tmp_path / "repro")
    assert facts["command"] == ["scripts/train.py", "--lr", "1"]
    assert facts["sources"] == "scripts"
    assert (tmp_path / "repro" / "script" / "scripts" / "parts" / "part.py").is_file()


def test_a_script_that_lies_elsewhere_is_named_as_it_lies_in_the_reproducer(tmp_path: Path) -> None:
    sources_in(tmp_path / "scripts")
    here = tmp_path / "here"
    here.mkdir()
    recording = made(tmp_path, "scripts/train.py")
    command = command_of(recording, here, tmp_path / "scripts" / "train.py", None, None)
    facts, _ = written(recording, command, tmp_path / "repro")
    assert facts["command"] == ["train.py"]


@pytest.mark.parametrize("ends", [True, False])
def test_the_last_steps_are_in_it_even_of_a_rank_that_was_killed(tmp_path: Path, ends: bool) -> None:
    sources_in(tmp_path)
    recording = made(tmp_path, "train.py", ends=ends)
    _, record = written(recording, command_of(recording, tmp_path, None, None, None), tmp_path / "repro")
    assert len(record.calls) == 12
    assert len(record.data) == 12
    assert record.piece(11) is not None


def test_it_begins_where_a_state_was_kept_last_unless_more_is_asked_for(tmp_path: Path) -> None:
    sources_in(tmp_path)
    recording = made(tmp_path, "train.py", states=(5, 10, 12))
    command = command_of(recording, tmp_path, None, None, None)
    facts, record = written(recording, command, tmp_path / "repro")
    assert facts["settings"]["first"] == 10  # from the one of step 12 on nothing is left to be replayed
    assert set(record.data) == {10, 11}
    facts, record = written(recording, command, tmp_path / "whole", first=0)
    assert facts["settings"]["first"] == 0
    assert len(record.data) == 12


def test_a_job_without_steps_is_told_from_one_that_was_cut_short(tmp_path: Path) -> None:
    assert lacks_steps(made(tmp_path / "none", "train.py", steps=0).bundle)
    assert not lacks_steps(made(tmp_path / "some", "train.py", steps=2).bundle)
    assert not lacks_steps(made(tmp_path / "killed", "train.py", steps=0, ends=False).bundle)
