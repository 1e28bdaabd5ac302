"""Ranks: numbers within the world, each once, all there, and one world size for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.model.ranks import name_ranks
from phalanx.preflight.agreement import split_of, world_size
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

# Rank and size by launcher; the first pair of which both are set holds.
_PAIRS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """What is wrong with who is who."""
    yield from _not_numbers(all_facts)
    yield from _unset(all_facts)
    for rank_name, size_name in _PAIRS:
        told = [one for one in all_facts if _number(one, rank_name) is not None and one.variable(size_name) is not None]
        if rank_name != "RANK" and all(_number(one, size_name) == 1 for one in told):
            continue  # each is a step of its own, such as `srun -w {host}` in --each makes
        if told and not (rank_name == "RANK" and _is_overruled(told)):
            yield from _numbering(told, rank_name, size_name, all_facts, options)
            break
    yield from _local(all_facts)


def _is_overruled(told: Sequence[HostFacts]) -> bool:
    """RANK was exported to all alike, and the launcher knows better: that is said where the two are compared."""
    names = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
    return any(
        (theirs := _number(one, name)) is not None and theirs != _number(one, "RANK") for one in told for name in names
    )


def _not_numbers(all_facts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK"):
        bad = [one for one in all_facts if one.variable(name) is not None and _number(one, name) is None]
        for value in dict.fromkeys(one.variable(name) or "" for one in bad):
            where = tuple(one.label for one in bad if (one.variable(name) or "") == value)
            yield observe("rank-not-a-number", where, name=name, value=repr(value))


def _unset(all_facts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    """RANK or WORLD_SIZE that a target lacks, though it has the rest of a job's variables and the others have it."""
    for name, other in (("RANK", "WORLD_SIZE"), ("WORLD_SIZE", "RANK")):
        having = [one for one in all_facts if one.variable(name) is not None]
        lacking = [one for one in all_facts if one.variable(name) is None and one.variable(other) is not None]
        if lacking and len(having) > len(lacking):
            where = tuple(one.label for one in lacking)
            right = having[0].variable(name) if name == "WORLD_SIZE" else ""
            yield observe("rank-variable-unset", where, name=name, count=len(having), right=right or None)


def _numbering(
    told: Sequence[HostFacts], rank_name: str, size_name: str, all_facts: Sequence[HostFacts], options: CheckOptions
) -> Iterable[CheckFact | Unchecked]:
    split = split_of(told, lambda one: one.variable(size_name))
    if split is not None:
        yield observe("world-size-differs", split.odd, name=size_name, count=len(told), **split.fields())
    holders: dict[int, list[str]] = {}
    for one in told:
        number = _number(one, rank_name)
        if number is not None:
            holders.setdefault(number, []).append(one.label)
    size = world_size(told) if split is None or split.common is not None else None
    for number, labels in holders.items():
        if len(labels) > 1:
            free = [rank for rank in range(size or 0) if rank not in holders]
            yield observe(
                "rank-duplicate",
                tuple(labels),
                name=rank_name,
                value=str(number),
                count=len(labels),
                free=name_ranks(free) if len(free) == 1 else None,
            )
        if size is not None and number >= size:
            yield observe(
                "rank-out-of-range",
                tuple(labels),
                name=rank_name,
                value=str(number),
                size_name=size_name,
                size=size,
                last=size - 1,
            )
    yield from _absent(told, holders, size, size_name, all_facts)


def _absent(
    told: Sequence[HostFacts],
    holders: dict[int, list[str]],
    size: int | None,
    size_name: str,
    all_facts: Sequence[HostFacts],
) -> Iterable[CheckFact | Unchecked]:
    if size is None:
        return
    absent = sorted(set(range(size)) - set(holders))
    if not absent or len(told) >= size:
        return  # as many as there should be: if one is missing, another is wrong, and that was said
    if len(all_facts) == 1:
        yield Unchecked(
            f"{name_ranks(absent)} of {size}", "all ranks: run it under your launcher in place of the script"
        )
    elif len(told) == len(all_facts) and all(
        (_number(one, "LOCAL_WORLD_SIZE") or 1) == 1 or _is_whole_node(one, told) for one in told
    ):
        yield observe(
            "rank-missing",
            (),
            tuple(one.label for one in told),
            name=size_name,
            size=size,
            absent=name_ranks(absent),
            seen=name_ranks(holders),
        )
    else:
        yield Unchecked(f"{name_ranks(absent)} of {size}", "all ranks: one target a rank, not one a host")


def _is_whole_node(one: HostFacts, told: Sequence[HostFacts]) -> bool:
    """Whether all ranks of its node are among the targets."""
    return sum(other.network == one.network for other in told) >= (_number(one, "LOCAL_WORLD_SIZE") or 1)


def _local(all_facts: Sequence[HostFacts]) -> Iterable[CheckFact]:
    for one in all_facts:
        local, count = _number(one, "LOCAL_RANK"), _number(one, "LOCAL_WORLD_SIZE")
        if local is not None and count is not None and local >= count:
            yield observe(
                "rank-out-of-range",
                (one.label,),
                name="LOCAL_RANK",
                value=str(local),
                size_name="LOCAL_WORLD_SIZE",
                size=count,
                last=count - 1,
            )
    places: dict[tuple[str, int], list[str]] = {}
    for one in all_facts:
        if (local := _number(one, "LOCAL_RANK")) is not None and _number(one, "RANK") is not None:
            places.setdefault((one.network, local), []).append(one.label)
    for (_, local), labels in places.items():
        if len(labels) > 1:
            yield observe("rank-duplicate", tuple(labels), name="LOCAL_RANK", value=str(local), count=len(labels))


def _number(host_facts: HostFacts, name: str) -> int | None:
    value = (host_facts.variable(name) or "").strip()
    return int(value) if value.isdigit() else None
