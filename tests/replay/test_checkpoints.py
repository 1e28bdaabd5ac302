"""Checkpoints are whole or not there: the writer is killed at every boundary of a file."""

from __future__ import annotations

import builtins
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phalanx.replay.inside.phalanx_record import checkpoints

torch: Any = None  # loaded when a test of this module runs, not by every worker that collects it


@pytest.fixture(autouse=True, scope="module")
def _load_torch() -> None:
    global torch
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install torch==2.13.0, or make test")


def tensors(value: float) -> dict[str, Any]:
    return {
        "model0.weight": torch.full((64, 3), value),
        "model0.brief": torch.full((5,), value).bfloat16(),
        "optimizer0.0.step": torch.tensor(value),
        "model0.empty": torch.empty(0),
    }


def facts(step: int) -> dict[str, Any]:
    return {"schema": "phalanx.checkpoint/1", "step": step, "values": {}, "random": {}}


class _File:
    """A file of which every write, flush and close can be the last."""

    def __init__(self, file: Any, count: Callable[[], None]) -> None:
        self._file, self._count = file, count

    def write(self, data: Any) -> Any:
        half = len(data) // 2
        self._file.write(data[:half])
        self._file.flush()
        self._count()
        return self._file.write(data[half:])

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        self._count()
        self._file.close()
        self._count()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def write_and_die(path: str, at: int) -> None:
    """In a child: write a checkpoint, and be gone at the given boundary; leaves with 0 if there is none so far on."""
    passed = 0

    def count() -> None:
        nonlocal passed
        passed += 1
        if passed == at:
            os._exit(9)

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any, **kwargs: Any) -> Any:
            count()
            result = act(*args, **kwargs)
            count()
            return result

        return inner

    really_open = builtins.open
    vars(checkpoints)["open"] = lambda *args, **kwargs: _File(counted(really_open)(*args, **kwargs), count)
    os.makedirs, os.rename, os.fsync = counted(os.makedirs), counted(os.rename), counted(os.fsync)
    shutil.rmtree = counted(shutil.rmtree)  # type: ignore[assignment]
    checkpoints.write_whole(tensors(2.0), facts(20), path)
    os._exit(0)


def test_a_kill_at_every_boundary_leaves_the_one_before(tmp_path: Path) -> None:
    boundaries = 0
    for at in range(1, 200):
        record = tmp_path / str(at)
        checkpoints.write_whole(tensors(1.0), facts(10), str(record / checkpoints.folder_name(10)))
        child = os.fork()
        if child == 0:
            write_and_die(str(record / checkpoints.folder_name(20)), at)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        steps = checkpoints.steps_in(str(record))
        assert steps in ([10], [10, 20])
        for step in steps:
            found, told = checkpoints.read(str(record / checkpoints.folder_name(step)))
            assert told["step"] == step
            expected = tensors(step / 10)
            assert set(found) == set(expected)
            for name, tensor in expected.items():
                assert torch.equal(found[name].view(tensor.dtype).view(tensor.shape), tensor)
        if status == 0:
            assert steps == [10, 20]
            boundaries = at
            break
    assert boundaries > 20


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (10, 20, 30, 40, 50):
        checkpoints.write_whole(tensors(1.0), facts(step), str(tmp_path / checkpoints.folder_name(step)))
    assert checkpoints.steps_in(str(tmp_path)) == [30, 40, 50]


def test_the_tensors_are_readable_by_others(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch", reason="pip install safetensors")
    checkpoints.write_whole(tensors(1.5), facts(1), str(tmp_path / "checkpoint-00000001"))
    found = safetensors.load_file(tmp_path / "checkpoint-00000001" / checkpoints.TENSORS)
    for name, tensor in tensors(1.5).items():
        assert torch.equal(found[name], tensor)


def test_a_hostile_header_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-00000001"
    checkpoints.write_whole(tensors(1.5), facts(1), str(folder))
    file = folder / checkpoints.TENSORS
    file.write_bytes(file.read_bytes().replace(b'"data_offsets":[0,768]', b'"data_offsets":[0,999]'))
    with pytest.raises(ValueError, match="outside"):
        checkpoints.read(str(folder))
