"""PyTorch's collectives as its dispatcher knows them: what a rank hands in, what it gets, and whether all get the same."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

from .fingerprints import UNSEEN


@dataclass(frozen=True)
class Kind:
    """One operation of `c10d`. Names are those of its schema's arguments."""

    name: str
    gives: str = ""  # the argument that is handed in
    gets: str = ""  # the argument that is filled
    alike: bool = False  # whether every member of the group gets the same bytes
    gathers: bool = False  # whether what is got is what the members gave, one behind the other
    reduces: bool = False  # whether a number that is not finite is looked for in it
    root_gives: bool = False  # only the root's input counts
    root_gets: bool = False  # only the root's output counts
    first_returned: bool = True  # returns its first argument beside the Work
    returns_work: bool = True
    shown: tuple[str, ...] = field(default=())  # further arguments that must agree


_KINDS = (
    Kind("allreduce_", "tensors", "tensors", alike=True, reduces=True),
    Kind("allreduce_coalesced_", "tensors", "tensors", alike=True, first_returned=False),
    Kind("broadcast_", "tensors", "tensors", alike=True, root_gives=True, shown=("root_rank",)),
    Kind("allgather_", "input_tensors", "output_tensors", alike=True),
    Kind("_allgather_base_", "input_tensor", "output_tensor", alike=True, gathers=True),
    Kind("allgather_coalesced_", "input_list", "output_lists", alike=True, first_returned=False),
    Kind("allgather_into_tensor_coalesced_", "inputs", "outputs", alike=True, first_returned=False),
    Kind("reduce_scatter_", "input_tensors", "output_tensors"),
    Kind("_reduce_scatter_base_", "input_tensor", "output_tensor", reduces=True),
    Kind("reduce_scatter_tensor_coalesced_", "inputs", "outputs", first_returned=False),
    # What is left in the tensors of those that are not the root is Gloo's working space: it is recorded too, because a
    # script may look at it.
    Kind("reduce_", "tensors", "tensors", first_returned=False, shown=("root_rank",)),
    Kind("gather_", "input_tensors", "output_tensors", root_gets=True, first_returned=False, shown=("root_rank",)),
    Kind("scatter_", "input_tensors", "output_tensors", root_gives=True, shown=("root_rank",)),
    Kind("alltoall_", "input_tensors", "output_tensors"),
    Kind("alltoall_base_", "input", "output", first_returned=False),
    Kind("send", "tensors", "", first_returned=False, shown=("dst", "tag")),
    Kind("recv_", "", "tensors", first_returned=False, shown=("src", "tag")),
    Kind("recv_any_source_", "", "tensors", first_returned=False, shown=("tag",)),
    Kind("barrier", first_returned=False),
    Kind("monitored_barrier_", first_returned=False, returns_work=False),
)
KINDS = {kind.name: kind for kind in _KINDS}


@dataclass(frozen=True)
class Group:
    """A group of ranks. Asked once and kept: every question to a process group goes through C++."""

    name: str
    words: str  # what it is called for people
    rank: int  # this rank's place in it
    size: int
    members: tuple[int, ...]

    @classmethod
    def everybody(cls, name: str, rank: int, size: int) -> Group:
        """The group of all ranks, for frameworks that have no objects for groups."""
        return cls(name, "all ranks", rank, size, tuple(range(size)))

    @classmethod
    def of(cls, real: Any) -> Group:
        """A process group of PyTorch's. The object is not held: it has to be collected in its time."""
        known = _groups.get(id(real))
        if known is not None and known[0]() is real:
            return known[1]
        import torch.distributed as distributed

        members = tuple(int(one) for one in distributed.get_process_group_ranks(real))
        group = cls(str(real.group_name), str(real.group_desc), real.rank(), real.size(), members)
        # The same group may come as another object, and an object's place may be taken by another group's.
        group = next((one for _, one in _groups.values() if one == group), group)
        _groups[id(real)] = weakref.ref(real), group
        return group


_groups: dict[int, tuple[weakref.ref[Any], Group]] = {}
_FROM_ONE_TO_ONE = ("send", "recv_", "recv_any_source_")


@dataclass(frozen=True)
class Operation:
    """An operation as this PyTorch has it: where each argument stands."""

    kind: Kind
    overload: Any
    places: dict[str, int]
    gives: int  # where, for the most asked; -1 for nowhere
    gets: int
    group: int
    unbox: Any  # makes a process group of the argument

    @classmethod
    def find(cls, name: str) -> Operation | None:
        """None if this release does not have it."""
        import torch
        from torch._C._distributed_c10d import ProcessGroup

        packet = getattr(torch.ops.c10d, name, None)
        if packet is None or name not in KINDS:
            return None
        overload = packet.default
        places = {argument.name: place for place, argument in enumerate(overload._schema.arguments)}
        kind = KINDS[name]
        gives, gets = places.get(kind.gives, -1), places.get(kind.gets, -1)
        return cls(kind, overload, places, gives, gets, places["process_group"], ProcessGroup.unbox)


class Call:
    """One call: its kind, group and tensors, read from the arguments as the dispatcher passes them."""

    __slots__ = ("_args", "_operation", "filled", "group", "handed_in", "is_odd", "kind", "look")

    def __init__(self, operation: Operation, args: tuple[Any, ...]) -> None:
        self._operation, self._args = operation, args
        self.kind = operation.kind
        self.group = Group.of(operation.unbox(args[operation.group]))
        self.filled: Any = None  # the memory of what is filled, where that is known beforehand
        self.handed_in: int | None = None  # its fingerprint, where this rank's share of the result is just that
        self.look = UNSEEN
        self.is_odd = False  # a number that was handed in is not finite

    def argument(self, name: str, otherwise: Any = None) -> Any:
        place = self._operation.places.get(name)
        return self._args[place] if place is not None and place < len(self._args) else otherwise

    @property
    def series(self) -> str:
        """What its number counts in. Members make the same collectives, but each its own sends and receives."""
        name = self.group.name
        return f"{name} point-to-point" if self.kind.name in _FROM_ONE_TO_ONE else name

    def first_argument(self) -> Any:
        """The tensors that most operations return beside their Work."""
        return self._args[0]

    @property
    def is_async(self) -> bool:
        """Whether the caller goes on and waits later; those without the argument always do."""
        if "async_op" in self._operation.places:
            return bool(self.argument("async_op", True))
        return self.kind.returns_work

    def _is_root(self) -> bool:
        return bool(self.argument("root_rank") == self.group.rank)

    def given(self) -> list[Any]:
        """The tensors handed in."""
        if not self.kind.gives or (self.kind.root_gives and not self._is_root()):
            return []
        return _flat(self._args[self._operation.gives])

    def got(self) -> list[Any]:
        """The tensors that are filled."""
        if not self.kind.gets or (self.kind.root_gets and not self._is_root()):
            return []
        return _flat(self._args[self._operation.gets])

    def details(self) -> str:
        """The further arguments, in words: `root_rank=0`, `dst=1 tag=0`. A reduction's kind cannot be read from outside C++."""
        return " ".join([f"{name}={self.argument(name)}" for name in self.kind.shown]) if self.kind.shown else ""


def _flat(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        return [value]
    if len(value) == 1:  # nearly always
        return _flat(value[0])
    return [tensor for item in value for tensor in _flat(item)]
