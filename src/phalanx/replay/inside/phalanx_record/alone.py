"""Lets a script believe in its peers: process groups of any size in one process, without a network.

The groups are PyTorch's own fake ones under the names of the real ones. They only have to exist: every collective is
answered from the recording before it would reach them.
"""

from __future__ import annotations

import functools
import io
import pickle
import pickletools
from types import ModuleType
from typing import Any

_PLAIN = {
    ("builtins", name)
    for name in ("set", "frozenset", "bytearray", "complex", "range", "slice", "int", "float", "str", "bytes", "bool")
} | {
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("collections", "Counter"),
    ("datetime", "timedelta"),
    ("datetime", "datetime"),
    ("torch", "Size"),
    ("torch", "device"),
}


def stand_in(module: ModuleType, rank: int, size: int) -> None:
    """Change `torch.distributed.distributed_c10d` so that groups are made without anybody else."""
    names = vars(module)
    really_init, really_make = names["init_process_group"], names["_new_process_group_helper"]

    @functools.wraps(really_init)
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        from torch.distributed import HashStore

        for name in ("init_method", "store", "rank", "world_size", "device_id"):
            kwargs.pop(name, None)
        return really_init(backend, store=HashStore(), rank=rank, world_size=size, **kwargs)

    @functools.wraps(really_make)
    def make(
        group_size: Any, group_rank: Any, members: Any, backend: Any, store: Any, *args: Any, **kwargs: Any
    ) -> Any:
        import torch.testing._internal.distributed.fake_pg  # noqa: F401  (registers the fake backend)

        for name in ("backend_options", "device_id"):
            kwargs.pop(name, None)
        made, prefix = really_make(group_size, group_rank, members, "fake", store, args[0], **kwargs)
        world = names["_world"]
        if made in world.pg_map:
            world.pg_map[made] = (backend, world.pg_map[made][1])
            world.pg_backend_config[made] = str(names["BackendConfig"](names["Backend"](str(backend))))
        return made, prefix

    def wait_for_nobody(*args: Any, **kwargs: Any) -> None:
        return None

    names["init_process_group"] = init_process_group
    names["_new_process_group_helper"] = make
    names["_store_based_barrier"] = wait_for_nobody


class RefusedObjectError(Exception):
    """A recorded object that is more than plain data."""


# A few bytes of a pickle make gigabytes with these: bytes(1 << 32), set(range(1 << 32)), str of a list that holds itself a million times.
_GIVEN = {
    "bytes": (list, tuple, str, bytes),
    "bytearray": (list, tuple, str, bytes),
    "str": (str, bytes),
    "set": (list, tuple, set, frozenset),
    "frozenset": (list, tuple, set, frozenset),
    "Counter": (list, tuple, dict),
    "OrderedDict": (list, tuple, dict),
}
_MEMO = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})


def _bounded(kind: Any, accepted: tuple[type, ...]) -> Any:
    """A type that is made of what stands in the pickle, and of nothing that multiplies it."""

    def make(*arguments: Any) -> Any:
        if not all(isinstance(one, accepted) for one in arguments):
            raise RefusedObjectError(f"the recording holds a {kind.__name__} made of a {type(arguments[0]).__name__}")
        return kind(*arguments)

    return make


class PlainUnpickler(pickle.Unpickler):
    """For objects that were sent through collectives: a recording may come from anybody, so only plain data is made of it."""

    def __init__(self, file: Any, **options: Any) -> None:
        data = file.read()
        _check_numbers(data)
        super().__init__(io.BytesIO(data), **options)

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            found = super().find_class(module, name)
            return _bounded(found, _GIVEN[name]) if name in _GIVEN else found
        raise RefusedObjectError(
            f"the recording holds an object of {module}.{name} that was sent between ranks. Making it runs code of the "
            "recording: if you trust where it comes from, replay with --trust-objects"
        )


def _check_numbers(data: bytes) -> None:
    """The unpickler makes room for the largest number that a pickle gives to an object: 37 bytes may ask for 4 GB."""
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in _MEMO and isinstance(argument, int) and argument > len(data):
                raise RefusedObjectError(
                    "the recording holds a pickle that asks for more memory than its size can need"
                )
    except (ValueError, IndexError, EOFError):
        return  # damaged: loading it says so


def refuse_objects(module: ModuleType) -> None:
    """Have PyTorch's object collectives make plain data only."""
    vars(module)["_unpickler"] = PlainUnpickler


def load_plain(data: bytes) -> Any:
    """Unpickle plain data."""
    return PlainUnpickler(io.BytesIO(data)).load()
