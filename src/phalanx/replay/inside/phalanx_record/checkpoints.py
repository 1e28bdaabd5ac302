"""Checkpoints of one rank: by PyTorch's distributed checkpointing, asynchronous, in safetensors and JSON, whole or not at all.

A folder is written beside its place and moved there when all of it is on the disk; a kill at any moment leaves the one before.
Each rank writes for itself: nothing here talks to another rank, so nothing can wait for one.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .journal import check_disk, private
from .memory import Bytes
from .state import State

TENSORS, FACTS = "tensors.safetensors", "state.json"
_KEPT = 3
_TYPES = {
    "float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "int16": "I16",
    "int8": "I8", "uint8": "U8", "bool": "BOOL", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip


def folder_name(step: int, kind: str = "checkpoint") -> str:
    """Where the checkpoint, or the ring's snapshot, after so many steps lies in the rank's record."""
    return f"{kind}-{step:08d}"


def save_async(
    state: State, record: str, done: Callable[[str, int], None], failed: Callable[[BaseException], None]
) -> None:
    """Copy the state now, write it in another thread; `done(folder, bytes)` or `failed` is called from there."""
    from torch.distributed.checkpoint import async_save

    facts, path = state.facts(), os.path.join(record, folder_name(state.step))
    writer = _make_writer(path, facts)
    future = async_save(dict(state.tensors), storage_writer=writer, async_stager=writer, no_dist=True)
    upload = getattr(future, "upload_completion", future)

    def ended(result: Any) -> None:
        error = result.exception()
        if error is not None:
            failed(error)
            return
        done(path, writer.size)

    upload.add_done_callback(ended)


def copied(tensors: dict[str, Any]) -> dict[str, Any]:
    """The tensors as they are now; the training waits for it. PyTorch's own way looks for shared storages and nested values too."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}


def write_whole(tensors: dict[str, Any], facts: dict[str, Any], path: str) -> int:
    """Write a checkpoint; it is there when this returns, or nothing of it is. Returns its bytes."""
    return write_pieces(table_of(tensors)[0], _pieces(tensors), facts, path)


def write_pieces(table: dict[str, Any], pieces: Iterable[Any], facts: dict[str, Any], path: str) -> int:
    """The same of bytes that are already in a row."""
    aside = _begin(path)
    size = _write_file(os.path.join(aside, TENSORS), table, pieces)
    _finish(aside, path, facts)
    return size


def table_of(tensors: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The header of a safetensors file of these, one behind the other; and how many bytes they are."""
    table: dict[str, Any] = {}
    passed = 0
    for name, tensor in tensors.items():
        kind = _TYPES.get(str(tensor.dtype)[6:])
        shape = list(tensor.shape) if kind else [tensor.nbytes]
        table[name] = {"dtype": kind or "U8", "shape": shape, "data_offsets": [passed, passed + tensor.nbytes]}
        passed += tensor.nbytes
    return table, passed


def _pieces(tensors: dict[str, Any]) -> Iterator[Any]:
    for tensor in tensors.values():
        yield memoryview(Bytes(tensor).array)


def _begin(path: str) -> str:
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f".{name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    os.makedirs(aside, mode=0o700)
    return aside


def _write_file(path: str, table: dict[str, Any], pieces: Iterable[Any]) -> int:
    size = max((entry["data_offsets"][1] for entry in table.values()), default=0)
    check_disk(os.path.dirname(path), size)
    text = json.dumps(table, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    with open(path, "wb", opener=private) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return size


def _finish(aside: str, path: str, facts: dict[str, Any]) -> None:
    with open(os.path.join(aside, FACTS), "w", encoding="utf-8", opener=private) as file:
        json.dump(facts, file)
        file.flush()
        os.fsync(file.fileno())
    shutil.rmtree(path, ignore_errors=True)
    os.rename(aside, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    _forget_old(os.path.dirname(path))


def _forget_old(record: str) -> None:
    """Keep the newest few."""
    kept = sorted(name for name in os.listdir(record) if name.startswith("checkpoint-"))
    for name in kept[:-_KEPT]:
        shutil.rmtree(os.path.join(record, name), ignore_errors=True)


def read(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors, as flat bytes, and the facts of a checkpoint. Nothing in it is trusted or run."""
    import torch

    with open(os.path.join(path, FACTS), encoding="utf-8") as file:
        facts = dict(json.load(file))
    with open(os.path.join(path, TENSORS), "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + int(offset) for offset in entry["data_offsets"])
        if not 0 <= begin <= end <= len(data):
            raise ValueError(f"{path}: {name} lies outside of the file")
        found[name] = (
            torch.frombuffer(bytearray(data[begin:end]), dtype=torch.uint8)
            if end > begin
            else torch.empty(0, dtype=torch.uint8)
        )
    return found, facts


def steps_in(record: str) -> list[int]:
    """The steps after which whole checkpoints lie in a rank's record."""
    try:
        names = os.listdir(record)
    except OSError:
        return []
    return sorted(
        int(name[11:])
        for name in names
        if name.startswith("checkpoint-") and name[11:].isdigit() and os.path.isfile(os.path.join(record, name, FACTS))
    )


def _make_writer(path: str, facts: dict[str, Any]) -> Any:
    """A storage for PyTorch's checkpointing that writes what `write_whole` writes: its own one pickles its index."""
    from torch.distributed.checkpoint.metadata import MetadataIndex
    from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
    from torch.futures import Future

    class SafeWriter(StorageWriter):  # type: ignore[misc]
        """Tensors as safetensors, the rest as JSON, moved into place when all is written."""

        size = 0
        should_synchronize_after_execute = False

        def stage(self, state: dict[str, Any]) -> dict[str, Any]:
            return copied(state)

        def synchronize_staging(self) -> None:
            return None

        def close(self) -> None:
            return None

        def reset(self, checkpoint_id: Any = None) -> None:
            return None

        def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
            self._aside = _begin(path)

        def prepare_local_plan(self, plan: Any) -> Any:
            return plan

        def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
            return plans

        def write_data(self, plan: Any, planner: Any) -> Any:
            tensors = {item.index.fqn: planner.resolve_data(item).detach() for item in plan.items}
            self.size = _write_file(os.path.join(self._aside, TENSORS), table_of(tensors)[0], _pieces(tensors))
            future: Any = Future()
            future.set_result(
                [
                    WriteResult(index=MetadataIndex(item.index.fqn), size_in_bytes=0, storage_data=None)
                    for item in plan.items
                ]
            )
            return future

        def finish(self, metadata: Any, results: Any) -> None:
            _finish(self._aside, path, facts)

        @classmethod
        def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
            return True

    return SafeWriter()


class Schedule:
    """When the next checkpoint is due: after so many steps, or at an agreed one. One at a time."""

    def __init__(self, every_steps: int) -> None:
        self._steps = every_steps
        self._lock = threading.Lock()
        self._is_busy = False

    def take(self, step: int, agreed: int | None) -> bool:
        """Whether to make one now."""
        due = step == agreed or bool(self._steps and step % self._steps == 0)
        with self._lock:
            if not due or self._is_busy:
                return False
            self._is_busy = True
            return True

    def release(self) -> None:
        """The one that was taken is written, or has failed."""
        with self._lock:
            self._is_busy = False
