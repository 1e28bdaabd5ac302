"""Values as JSON and back by their declared types, for what one machine tells another about its ranks."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Dataclasses, enumerations, tuples and mappings as what JSON knows."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], value: Any) -> T:
    """A value of this type. Raises TypeError or ValueError where the data are something else."""
    return cast("T", _read(kind, value))


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, value: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        return _read(next(one for one in inner if one is not type(None)), value)
    if origin is tuple:
        return _read_tuple(inner, value)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise TypeError(f"an object was expected, not {type(value).__name__}")
        return {_read_key(inner[0], name): _read(inner[1], item) for name, item in value.items()}
    if is_dataclass(kind):
        return _read_object(cast("type[Any]", kind), value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if isinstance(kind, type) and type(value) is not kind:
        raise TypeError(f"{kind.__name__} was expected, not {type(value).__name__}")
    return value


def _read_key(kind: Any, name: str) -> Any:
    return int(name) if kind is int else name


def _read_tuple(inner: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise TypeError(f"a list was expected, not {type(value).__name__}")
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(_read(inner[0], item) for item in value)
    if len(inner) != len(value):
        raise ValueError(f"{len(inner)} items were expected, not {len(value)}")
    return tuple(_read(one, item) for one, item in zip(inner, value, strict=True))


def _read_object(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"an object was expected for {kind.__name__}")
    hints = _hints(kind)  # type: ignore[arg-type]
    return kind(**{name: _read(hints[name], item) for name, item in value.items() if name in hints})
