"""Groups of ranks that each shard a copy of the model, and never average their gradients."""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, Parameter, Step
from phalanx.verification.found import Found
from phalanx.verification.replicas import FAR, SAME, averages_parameters, is_model_parallel, spread

_FEWEST = 2  # steps
_SHARDS = re.compile(r"\bfully_shard\(")


def check(evidence: Evidence) -> Iterator[Found]:
    """Equal parts in meshes that share no rank: they start alike, and their gradients differ at every step."""
    if averages_parameters(evidence) or is_model_parallel(evidence):
        return
    for optimizer in evidence.optimizers:
        held = evidence.holders(optimizer)
        steps = [at for _, at in evidence.common_steps(optimizer)]
        if len(held) < 2 or len(steps) < _FEWEST:
            continue
        for index, parameters in enumerate(zip(*(one.parameters for one in held.values()), strict=True)):
            ranks = _copies(dict(zip(held, parameters, strict=True)))
            if len(ranks) > 1 and _apart(index, ranks, steps):
                yield _found(evidence, parameters[0], ranks, {rank: tuple(_mesh(held[rank].parameters[index])) for rank in ranks}, steps[0])  # fmt: skip
                return


def _mesh(parameter: Parameter) -> tuple[int, ...]:
    return tuple(parameter.shard[2]) if isinstance(parameter.shard, tuple) else ()


def _copies(held: dict[int, Parameter]) -> tuple[int, ...]:
    """Ranks at the same place of meshes that have no rank in common."""
    places: dict[object, list[int]] = {}
    for rank, parameter in held.items():
        if _mesh(parameter):
            places.setdefault(parameter.shard[:2], []).append(rank)
    for ranks in map(sorted, places.values()):
        meshes = [set(_mesh(held[rank])) for rank in ranks]
        if len(ranks) > 1 and sum(map(len, meshes)) == len(set.union(*meshes)):
            return tuple(ranks)
    return ()


def _apart(index: int, ranks: tuple[int, ...], steps: list[dict[int, Step]]) -> bool:
    starts = [steps[0][rank].before[index] for rank in ranks]
    grads = [[at[rank].grad[index] for rank in ranks] for at in steps]
    known = all(value is not None for at in (starts, *grads) for value in at)
    return known and spread(starts) <= SAME and all(spread(at) > FAR for at in grads)


def _found(
    evidence: Evidence, parameter: Parameter, ranks: tuple[int, ...], meshes: dict[int, tuple[int, ...]], at: dict[int, Step]
) -> Found:  # fmt: skip
    file = at[ranks[0]].line.rpartition(":")[0]
    lines = [number for number, text in enumerate(evidence.lines(file), 1) if _SHARDS.search(text)]
    line = f"{file}:{lines[0]}" if lines else at[ranks[0]].line
    groups = " and ".join(f"{{{', '.join(map(str, meshes[rank]))}}}" for rank in ranks[:3])
    return Found(
        cause="gradients-reduced-over-wrong-group",
        headline=f"The model is sharded over {groups} apart ({line}), and nothing averages the gradients between them: `{parameter.name}` has another gradient on {name_ranks(ranks)} from step 1 on.",
        line=line,
        pattern="fix-distributed-api-usage",
        do="Give `fully_shard` the whole mesh, `mesh=init_device_mesh(device, (replicas, shards), mesh_dim_names=(\"replicate\", \"shard\"))`, not its shard dimension alone; without `mesh=` it shards over all ranks.",
        why="Each group of ranks trains a model of its own.",
        title="Replicas of a sharded model are not synchronised",
        explains=("gradients-never-synchronised", "weights-diverge"),
    )  # fmt: skip
