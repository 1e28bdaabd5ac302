"""Ranks: numbers within the world, each once, all there, and one world size for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.check.agreement import split_of, world_size
from phalanx.check.options import CheckOptions
from phalanx.check.reading import Reading
from phalanx.check.witness import Witness, name_all
from phalanx.model import Unchecked
from phalanx.model.ranks import name_ranks

# Rank and size by launcher; the first pair of which both are set holds.
_PAIRS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[Reading | Unchecked]:
    """What is wrong with who is who."""
    yield from _not_numbers(witnesses)
    yield from _unset(witnesses)
    for rank_name, size_name in _PAIRS:
        told = [one for one in witnesses if _number(one, rank_name) is not None and one.variable(size_name) is not None]
        if told and not (rank_name == "RANK" and _is_overruled(told)):
            yield from _numbering(told, rank_name, size_name, witnesses, options)
            break
    yield from _local(witnesses)


def _is_overruled(told: Sequence[Witness]) -> bool:
    """RANK was exported to all alike, and the launcher knows better: that is said where the two are compared."""
    names = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
    return any(
        (theirs := _number(one, name)) is not None and theirs != _number(one, "RANK") for one in told for name in names
    )


def _not_numbers(witnesses: Sequence[Witness]) -> Iterable[Reading]:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK"):
        bad = [one for one in witnesses if one.variable(name) is not None and _number(one, name) is None]
        for value in dict.fromkeys(one.variable(name) or "" for one in bad):
            where = tuple(one.label for one in bad if (one.variable(name) or "") == value)
            yield Reading(
                f"check: {name}={value!r} on {name_all(where)} is not a number from 0 on",
                accused=where,
                values={"name": name},
            )


def _unset(witnesses: Sequence[Witness]) -> Iterable[Reading]:
    """RANK or WORLD_SIZE that a party lacks, though it has the rest of a job's variables and the others have it."""
    for name, other in (("RANK", "WORLD_SIZE"), ("WORLD_SIZE", "RANK")):
        having = [one for one in witnesses if one.variable(name) is not None]
        lacking = [one for one in witnesses if one.variable(name) is None and one.variable(other) is not None]
        if lacking and len(having) > len(lacking):
            where = tuple(one.label for one in lacking)
            right = having[0].variable(name) if name == "WORLD_SIZE" else ""
            yield Reading(
                f"check: {name} is not set on {name_all(where)}, but on {len(having)} others",
                accused=where,
                values={"right": right or "", "name": name},
            )


def _numbering(
    told: Sequence[Witness], rank_name: str, size_name: str, witnesses: Sequence[Witness], options: CheckOptions
) -> Iterable[Reading | Unchecked]:
    split = split_of(told, lambda one: one.variable(size_name))
    if split is not None:
        advice = (
            f"Set it to {split.common} on {name_all(split.odd)}."
            if split.common
            else f"There are {len(told)} ranks here: set it to {len(told)}."
        )
        yield Reading(
            f"check: {size_name} differs between the ranks: {split.told()}",
            accused=split.odd,
            values={"advice": advice},
        )
    holders: dict[int, list[str]] = {}
    for one in told:
        number = _number(one, rank_name)
        if number is not None:
            holders.setdefault(number, []).append(one.label)
    size = world_size(told) if split is None or split.common is not None else None
    for number, labels in holders.items():
        if len(labels) > 1:
            free = [rank for rank in range(size or 0) if rank not in holders]
            yield Reading(
                f"check: {rank_name}={number} is given to {len(labels)} processes, on {name_all(labels)}",
                accused=tuple(labels),
                values={
                    "advice": f"{name_ranks(free).capitalize()} is free." if len(free) == 1 else "",
                    "name": rank_name,
                },
            )
        if size is not None and number >= size:
            yield Reading(
                f"check: {rank_name}={number} on {name_all(labels)} is out of range: {size_name} is {size}, so ranks go from 0 to {size - 1}",
                accused=tuple(labels),
                values={"name": rank_name, "size": str(size)},
            )
    yield from _absent(told, holders, size, size_name, witnesses)


def _absent(
    told: Sequence[Witness],
    holders: dict[int, list[str]],
    size: int | None,
    size_name: str,
    witnesses: Sequence[Witness],
) -> Iterable[Reading | Unchecked]:
    if size is None:
        return
    absent = sorted(set(range(size)) - set(holders))
    if not absent or len(told) >= size:
        return  # as many as there should be: if one is missing, another is wrong, and that was said
    if len(witnesses) == 1:
        yield Unchecked(
            f"{name_ranks(absent)} of {size}", "all ranks: run it under your launcher in place of the script"
        )
    elif len(told) == len(witnesses) and all(
        (_number(one, "LOCAL_WORLD_SIZE") or 1) == 1 or _is_whole_node(one, told) for one in told
    ):
        yield Reading(
            f"check: {size_name} is {size}, but {name_ranks(absent)} {'is' if len(absent) == 1 else 'are'} nowhere; seen: {name_ranks(holders)}",
            harmed=tuple(one.label for one in told),
            values={"absent": name_ranks(absent), "size": str(size)},
        )
    else:
        yield Unchecked(f"{name_ranks(absent)} of {size}", "all ranks: one party a rank, not one a host")


def _is_whole_node(one: Witness, told: Sequence[Witness]) -> bool:
    """Whether all ranks of its node are among the parties."""
    return sum(other.network == one.network for other in told) >= (_number(one, "LOCAL_WORLD_SIZE") or 1)


def _local(witnesses: Sequence[Witness]) -> Iterable[Reading]:
    for one in witnesses:
        local, count = _number(one, "LOCAL_RANK"), _number(one, "LOCAL_WORLD_SIZE")
        if local is not None and count is not None and local >= count:
            yield Reading(
                f"check: LOCAL_RANK={local} on {one.label} is out of range: LOCAL_WORLD_SIZE is {count}, so ranks go from 0 to {count - 1}",
                accused=(one.label,),
                values={"name": "LOCAL_RANK", "size": str(count)},
            )
    places: dict[tuple[str, int], list[str]] = {}
    for one in witnesses:
        if (local := _number(one, "LOCAL_RANK")) is not None and _number(one, "RANK") is not None:
            places.setdefault((one.network, local), []).append(one.label)
    for (_, local), labels in places.items():
        if len(labels) > 1:
            yield Reading(
                f"check: LOCAL_RANK={local} is given to {len(labels)} processes, on {name_all(labels)}",
                accused=tuple(labels),
                values={"name": "LOCAL_RANK"},
            )


def _number(witness: Witness, name: str) -> int | None:
    value = (witness.variable(name) or "").strip()
    return int(value) if value.isdigit() else None
