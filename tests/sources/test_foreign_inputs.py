"""Files that are made to hang, crash or flood a reader: nested and multiplying archives, pipes and devices, deep JSON, wrong types."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from phalanx.diagnosis import diagnose_paths
from phalanx.replay.recordings import ReplayError, open_recording
from phalanx.sources import inputs

LOG = b"[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n[rank0]: waiting\n"
MANIFEST: dict[str, Any] = {
    "schema": "phalanx.bundle/1", "command": ["python", "train.py"], "size": 2, "state": "ended", "attempts": [{"attempt": 0}], "framework": "torch", "started": 1.0, "host": "h",
}  # fmt: skip
FILES = ("manifest.json", "attempt0/watch.jsonl", "attempt0/samples.jsonl", "attempt0/facts.jsonl", *(f"attempt0/rank0/{name}" for name in ("output.log", "exit.json", "process.json", "environment.json", "stacks-1.txt", "collectives-1.json", "error.json", "record/meta.json", "record/calls.jsonl")))  # fmt: skip


def bundle(folder: Path, manifest: object = MANIFEST) -> Path:
    record = folder / "attempt0/rank0/record"
    record.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "attempt0/rank0/output.log").write_bytes(LOG)
    (record / "meta.json").write_text(json.dumps({"schema": "phalanx.record/1", "rank": 0, "mode": "full"}))
    (record / "calls.jsonl").write_text('{"k":"begin"}\n')
    return folder


def read_all(folder: Path) -> None:
    """What every verb does with a bundle; only plain refusals may come of it."""
    diagnose_paths([str(folder)])
    try:
        recording = open_recording(folder)
        recording.environment(0)
    except ReplayError:
        pass


@pytest.mark.parametrize("times", [1, 2, 4])
def test_logs_compressed_several_times_are_read(tmp_path: Path, times: int) -> None:
    data = LOG
    for _ in range(times):
        data = gzip.compress(data)
    (tmp_path / "a.log.gz").write_bytes(data)
    report = diagnose_paths([str(tmp_path / "a.log.gz")])
    assert report.verdict is not None
    assert report.verdict.symptom == "fail.out-of-memory"


def test_endless_nesting_is_refused(tmp_path: Path) -> None:
    data = LOG
    for _ in range(6):
        data = gzip.compress(data)
    (tmp_path / "a.log.gz").write_bytes(data)
    report = diagnose_paths([str(tmp_path / "a.log.gz")])
    assert any("compressed more than" in one.what for one in report.not_checked)


def test_of_a_bomb_the_beginning_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_MOST_UNPACKED", 1 << 20)
    monkeypatch.setattr(inputs, "_PATIENCE", 0.0)
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(b"starting\n" * 100_000 + LOG * 40_000))
    report = diagnose_paths([str(tmp_path / "a.log.gz")])
    assert any("times its size" in one.what for one in report.not_checked)
    assert report.verdict is not None
    assert report.verdict.symptom == "fail.out-of-memory"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "deep list", "deep object", "other types"])
def test_anything_in_place_of_a_file_of_a_bundle(tmp_path: Path, name: str, kind: str) -> None:
    folder = bundle(tmp_path / "b")
    path = folder / name
    path.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "deep list":
            path.write_bytes(b"[" * 100_000)
        case "deep object":
            path.write_bytes(b'{"schema":' * 50_000)
        case _:
            path.write_bytes(
                b'[1,{"a":3}]\n3\n"x"\nnull\n{"kind":"stall","ranks":7,"data":3}\n{"kind":"stall","ranks":[[]],"data":{"missing":5}}\n'
            )
    read_all(folder)


@pytest.mark.parametrize("field", [*MANIFEST, "reason", "roles", "name", "ended", "status"])
def test_a_field_of_a_manifest_of_any_type(tmp_path: Path, field: str) -> None:
    for number, value in enumerate(
        (None, 1e9, 10**30, -4, "x", [], [3], {}, [{"attempt": {}}], {"a": [1]}, True, "\x1b]0;x\x07")
    ):
        read_all(bundle(tmp_path / str(number), {**MANIFEST, field: value}))
