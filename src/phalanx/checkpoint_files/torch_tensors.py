"""Tensors in what a torch.save pickle would build: plain ones, parameters, DTensors and ShardedTensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from phalanx.checkpoint_files.dtypes import SIZES, STORAGES, count_of
from phalanx.checkpoint_files.pickled import Global, Node

MOST_VALUES = 5_000_000
_PLAIN = frozenset({"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3"})
_AROUND = frozenset({"_rebuild_parameter", "_rebuild_parameter_with_state", "_rebuild_device_tensor_from_cpu_tensor"})


@dataclass(frozen=True, slots=True)
class Found:
    """A tensor as the pickle describes it. `key` is its storage's name in the file, empty if its values are elsewhere."""

    key: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0  # in numbers
    stride: tuple[int, ...] = ()
    storage_numbers: int = 0
    is_parameter: bool = False
    sharding: str = ""
    whole: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether the values lie one behind the other."""
        expected = 1
        for side, step in zip(reversed(self.shape), reversed(self.stride), strict=False):
            if side != 1 and step != expected:
                return False
            expected *= max(1, side)
        return True

    @property
    def bytes(self) -> int:
        """Size of its values."""
        return SIZES.get(self.dtype, 0) * count_of(self.shape)


def tensor_in(value: Any) -> Found | None:
    """The tensor that a node stands for; None if it is something else."""
    if not isinstance(value, Node) or not isinstance(value.made_by, Global):
        return None
    name, args = value.made_by.name, value.args if isinstance(value.args, tuple) else ()
    if name in _PLAIN and len(args) >= 4:
        return _plain(args)
    if name in _AROUND and args:
        inner = tensor_in(args[0])
        return inner and _with(inner, is_parameter=True)
    if name == "_rebuild_from_type_v2" and len(args) >= 4:
        return _subclass(args)
    if name == "_rebuild_meta_tensor_no_storage" and len(args) >= 2:
        return Found("", _dtype(args[0]), numbers_in(args[1]))
    if name == "ShardedTensor":
        return _sharded(value)
    return None


def _plain(args: tuple[Any, ...]) -> Found | None:
    reference = args[0].args if isinstance(args[0], Node) and args[0].made_by == "persistent" else None
    key, dtype, numbers = "", "", 0
    if isinstance(reference, tuple) and len(reference) >= 5:
        dtype = STORAGES.get(reference[1].name, "") if isinstance(reference[1], Global) else ""
        key, numbers = storage_key(reference[2]), reference[4] if isinstance(reference[4], int) else 0
    given = next((one for one in args[4:] if isinstance(one, Global)), None)  # _rebuild_tensor_v3 says it apart
    offset = args[1] if isinstance(args[1], int) else 0
    if given is not None and _dtype(given) in SIZES:
        dtype, numbers = _dtype(given), numbers // SIZES[_dtype(given)]
    return Found(key, dtype, numbers_in(args[2]), offset, numbers_in(args[3]), numbers)


def storage_key(value: Any) -> str:
    """A storage's name; what is neither text nor number is none, and is not put into words: that could take for ever."""
    return str(value)[:200] if isinstance(value, str | int) else ""


def _subclass(args: tuple[Any, ...]) -> Found | None:
    """A tensor subclass: its local values are in its state, its whole shape in its arguments."""
    given = args[3][1] if isinstance(args[3], tuple) and len(args[3]) == 2 else args[3]  # slots come as a pair
    state = given if isinstance(given, dict) else {}
    inner = tensor_in(state.get("_local_tensor"))
    if inner is None:
        return tensor_in(Node(args[0], args[2]))
    whole = numbers_in(args[2][2]) if isinstance(args[2], tuple) and len(args[2]) > 2 else ()
    spec = state.get("_spec")
    placements = spec.get("placements") if isinstance(spec, Node) else None
    words = [_placement(one) for one in placements] if isinstance(placements, tuple | list) else []
    is_part = whole != inner.shape
    return _with(inner, sharding=", ".join(words) if is_part else "", whole=whole if is_part else ())


def _placement(value: Any) -> str:
    name = value.name.rpartition(".")[2] if isinstance(value, Node) else "?"
    if not isinstance(value, Node):
        return name
    side = value.get("dim")
    if side is None:
        side = value.args[0] if isinstance(value.args, tuple) and value.args and isinstance(value.args[0], int) else ""
    return f"{name}({side})"


def _sharded(value: Node) -> Found | None:
    """A ShardedTensor: its state is (local shards, metadata, …)."""
    state = value.state if isinstance(value.state, tuple) else ()
    if len(state) < 2:
        return None
    shards = state[0] if isinstance(state[0], list) else []
    whole = numbers_in(state[1].get("size")) if isinstance(state[1], Node) else ()
    if not shards:
        return Found("", "", whole or (), sharding="no local shard", whole=whole)
    first = shards[0]
    inner = tensor_in(first.get("tensor")) if isinstance(first, Node) else None
    metadata = first.get("metadata") if isinstance(first, Node) else None
    offsets = numbers_in(metadata.get("shard_offsets")) if isinstance(metadata, Node) else ()
    if inner is None:
        return None
    return _with(inner, sharding=f"at {list(offsets)}", whole=whole)


def _with(found: Found, **changes: Any) -> Found:
    values = {name: getattr(found, name) for name in Found.__slots__}
    return Found(**{**values, **changes})


def _dtype(value: Any) -> str:
    return value.name if isinstance(value, Global) else ""


def numbers_in(value: Any) -> tuple[int, ...]:
    """A shape: a tuple, or a torch.Size made of one."""
    if isinstance(value, Node):
        value = value.args[0] if isinstance(value.args, tuple) and value.args else ()
    return (
        tuple(one for one in value[:64] if isinstance(one, int) and 0 <= one < 1 << 62)
        if isinstance(value, tuple | list)
        else ()
    )


def walk(tree: Any) -> Iterator[tuple[tuple[str, ...], Found]]:
    """Every tensor with the path of keys that leads to it; what is reached twice is told once."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), tree)]
    seen: set[int] = set()
    for _ in range(MOST_VALUES):
        if not waiting:
            return
        path, value = waiting.pop()
        if not isinstance(value, dict | list | tuple | Node) or len(path) > 24:
            continue
        found = tensor_in(value)
        if found is not None:
            yield path, found  # two names for one tensor are two entries of a state_dict
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        waiting.extend(reversed(list(_children(path, value))))


def _children(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Node):
        for child in (value.state, value.args, value.items):
            yield from _children(path, child) if not isinstance(child, Node) else [(path, child)]
    elif isinstance(value, dict):
        for key, child in value.items():
            if isinstance(child, dict | list | tuple | Node):
                yield (*path, key if isinstance(key, str) else str(key) if isinstance(key, int) else "…"), child
    elif isinstance(value, list | tuple):
        for place, child in enumerate(value):
            if isinstance(child, dict | list | tuple | Node):
                yield (*path, str(place)), child
