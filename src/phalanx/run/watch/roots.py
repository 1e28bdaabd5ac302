"""Who named another root than the rest in a broadcast, reduce, gather or scatter; Gloo's recorder does not keep roots.

What a rank that waits in the call named stands in the arguments of its stack. Of a rank that went on the call's own expression tells,
worth what its variables are worth now, if it still is in the function that made the call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from phalanx.model import Frame
from phalanx.run.watch.arguments import argument_at, chosen_aside
from phalanx.run.watch.dissent import Dissent, differs, each_side, odd_of, sides_of
from phalanx.run.watch.stacks import ProcessStacks, Thread
from phalanx.sources.rank_conditions import Variables, value_of

_C10D = "torch/distributed/distributed_c10d.py"
_HOROVOD = "horovod/torch/mpi_ops.py"
# By the name of the call: how its root is called, and at which place it may stand.
_ROOTS: Mapping[str, tuple[str, int]] = {
    "broadcast": ("src", 1),
    "broadcast_object_list": ("src", 1),
    "reduce": ("dst", 1),
    "gather": ("dst", 2),
    "gather_object": ("dst", 2),
    "scatter": ("src", 2),
    "scatter_object_list": ("src", 2),
}


@dataclass(frozen=True, slots=True)
class Rooted:
    """A call with a root in which a rank waits."""

    call: str
    place: Frame  # of the user's code
    root: int
    aside: str = ""  # the condition on the rank that chose this root


def find_dissent(stacks: Mapping[int, ProcessStacks], size: int) -> Dissent | None:
    """None where all that wait in such a call name the same root, or only one rank is known."""
    mains = {rank: one.main for rank, one in stacks.items() if one.main is not None and one.main.values}
    waiting = {rank: call for rank, main in mains.items() if (call := rooted_call(main, rank, size)) is not None}
    calls = Counter(call.call for call in waiting.values())
    if not calls:
        return None
    ((name, _),) = calls.most_common(1)
    waiting = {rank: call for rank, call in waiting.items() if call.call == name}
    named = {rank: str(call.root) for rank, call in waiting.items()}
    for rank in mains.keys() - waiting.keys():
        if (root := _named_before(mains[rank], waiting, rank, size)) is not None:
            named[rank] = str(root)
    if not differs(named):
        return None
    culprits, why = odd_of(named, size), ""
    if not culprits:
        aside = frozenset(rank for rank, call in waiting.items() if call.aside)
        culprits = aside if len(aside) * 2 <= len(named) else culprits
        why = "".join(f", chosen by `{waiting[rank].aside}`" for rank in sorted(culprits)[:1])
    place = next(iter(waiting.values())).place.place
    text = f"different roots of {name} at {place}: {sides_of(named, 'names', 'name')}{why}"
    fields = {"root_call": f"{name} at {place}", "roots": each_side(named, "names", "name"), "chosen": why or None}
    return Dissent(culprits, text, "root", fields)


def rooted_call(main: Thread, rank: int, size: int) -> Rooted | None:
    """The call with a root in which a thread stands; None if it stands in none, or its root is not known."""
    found: tuple[str, int] | None = None
    for frame, told in zip(reversed(main.frames), reversed(main.values), strict=True):
        if frame.path.endswith(_C10D) and frame.function in _ROOTS:
            name, _ = _ROOTS[frame.function]
            # the outermost of calls within calls is the user's own, and counts in the whole job's ranks
            root = told.get(name, "")
            if root.isdecimal():
                found = (frame.function, int(root))
        elif frame.is_user_code:
            if found is None:
                return None
            known = Variables.of(told, rank, size)
            name, place = _ROOTS[found[0]]
            given = argument_at(frame.file, frame.line, found[0], (name,), place)
            return Rooted(*found[:1], frame, found[1], chosen_aside(frame.file, *given, known) if given else "")
    return None


def _named_before(main: Thread, waiting: Mapping[int, Rooted], rank: int, size: int) -> int | None:
    """The root that a rank elsewhere in the same function would name in the call now."""
    for call in waiting.values():
        name, place = _ROOTS[call.call]
        given = argument_at(call.place.file, call.place.line, call.call, (name,), place)
        if given is None:
            return None
        for frame, told in zip(main.frames, main.values, strict=True):
            if (frame.file, frame.function) == (call.place.file, call.place.function):
                return value_of(given[0], Variables.of(told, rank, size))
    return None


def find_other_name(stacks: Mapping[int, ProcessStacks], size: int) -> Dissent | None:
    """Ranks that wait in the same call of Horovod for a tensor of another name; None where all wait for one."""
    named: dict[int, str] = {}
    calls: set[tuple[str, str]] = set()
    for rank, one in stacks.items():
        frames = one.main.frames if one.main is not None else ()
        for number, told in enumerate(one.main.values if one.main is not None else ()):
            name = told.get("name", "")
            if frames[number].path.endswith(_HOROVOD) and name[:1] in ("'", '"'):
                named[rank] = name.strip("'\"")
                calls.add((frames[number].function, frames[number - 1].place if number else ""))
                break  # the outermost is the user's own call
    if len(calls) != 1 or not differs(named):
        return None
    ((call, place),) = calls
    text = f"different names of {call} at {place}: {sides_of(named, 'names', 'name')}"
    fields = {"what": f"names of {call} at {place}", "sides": each_side(named, "names", "name")}
    return Dissent(odd_of(named, size), text, "name", fields)
