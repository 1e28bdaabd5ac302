"""Functions, arguments and results as files: written and read in a stream, so that a large one is not held twice.

Only files of a job's own, authenticated nodes are ever loaded: loading a pickle runs code.
"""

from __future__ import annotations

import pickle
import pickletools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle


class PicklingError(Exception):
    """The function, its arguments or its result cannot travel; the message says which and why."""


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Like its parent, but large tensors go to the file as they lie in memory instead of through copies."""

    def reducer_override(self, obj: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None and type(obj) is torch.Tensor and _is_plain(obj):
            data = pickle.PickleBuffer(obj.detach().reshape(-1).numpy().view("uint8"))
            return _tensor, (data, str(obj.dtype), tuple(obj.shape), obj.requires_grad)
        return super().reducer_override(obj)


def _is_plain(tensor: Any) -> bool:
    """A dense tensor in the processor's memory that NumPy can show, not part of a graph."""
    names = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8")
    return (
        tensor.device.type == "cpu"
        and tensor.layout is sys.modules["torch"].strided
        and tensor.is_leaf
        and tensor.is_contiguous()
        and tensor.numel() > 1 << 16
        and str(tensor.dtype).removeprefix("torch.") in names
    )


def _tensor(buffer: Any, dtype: str, shape: tuple[int, ...], requires_grad: bool) -> Any:
    import torch

    data = bytearray(buffer) if memoryview(buffer).readonly else buffer
    kind = getattr(torch, dtype.removeprefix("torch."))
    return torch.frombuffer(data, dtype=kind).reshape(shape).requires_grad_(requires_grad)


def dump(value: Any, path: Path, by_value: Iterable[ModuleType] = ()) -> None:
    """Write a value. Modules in `by_value` travel whole, because they are not to be found on the other side."""
    modules = list(by_value)
    beside = path.with_name(f".{path.name}.new")
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        with beside.open("wb") as file:
            _Pickler(file, protocol=5).dump(value)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def load(path: Path) -> Any:
    """Read a value."""
    with path.open("rb") as file:
        return pickle.load(file)  # noqa: S301 (of this job's own making, see above)


def explain(what: str, act: Callable[[], None], advice: str = "") -> None:
    """Do something that pickles, and say plainly what cannot travel. Raises PicklingError, or OSError for a full disk."""
    try:
        act()
    except OSError:
        raise
    except Exception as error:  # a class may raise what it likes when it is asked for its state
        raise PicklingError(
            f"{what}: {type(error).__name__}: {error}. Open files, locks, connections and generators cannot travel{advice}"
        ) from error


def named_modules(path: Path) -> set[str]:
    """The modules that a pickle refers to by name, without loading it."""
    found: set[str] = set()
    with path.open("rb") as file:
        for code, argument, _ in pickletools.genops(file):
            if isinstance(argument, str) and len(argument) < 200 and code.name != "GLOBAL":
                if argument in sys.modules:
                    found.add(argument)
            elif code.name == "GLOBAL" and isinstance(argument, str):
                found.add(argument.split(" ")[0])
    return found
