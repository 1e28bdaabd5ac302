"""What a pickle is read into: names, nodes in the place of objects, and plain values."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any


class PickleError(ValueError):
    """The bytes are no whole pickle, or ask for more than a checkpoint needs."""


@dataclass(frozen=True, slots=True)
class Global:
    """A name that loading would import."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(slots=True, eq=False)
class Node:
    """An object that loading would build: what would be called, with what, and the state it would be given."""

    made_by: Any
    args: Any = ()
    state: Any = None
    items: list[Any] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The class or function, as `module.name`."""
        return str(self.made_by) if isinstance(self.made_by, Global) else ""

    def get(self, name: str) -> Any:
        """An attribute, where the state is a dictionary of them."""
        state = self.state
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):  # with slots
            state = {**(state[0] if isinstance(state[0], dict) else {}), **state[1]}
        return state.get(name) if isinstance(state, dict) else None


@dataclass(frozen=True, slots=True)
class Pickled:
    """One pickle of a stream: its value, every name it asks for, what it calls, and where it ends."""

    value: Any
    globals: frozenset[Global]
    called: frozenset[Global]
    stop: int


def as_key(value: Any) -> Hashable:
    """A key that is quick to hash: tuples that hold each other take for ever, and lists cannot be hashed."""
    if isinstance(value, tuple) and len(value) <= 16 and not any(isinstance(one, tuple | list | dict) for one in value):
        return value
    return Node("key", value) if isinstance(value, tuple | list | dict | bytearray) else value
