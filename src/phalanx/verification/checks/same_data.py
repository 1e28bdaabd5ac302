"""Ranks that should share out the data and train on the same samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from phalanx.model.ranks import all_of, name_ranks
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import NOT_PARALLEL, Found
from phalanx.verification.samples import Pass, are_told_apart, data_parallel_ranks, passes_of, shared, side_by_side

_FEWEST = 4  # samples of a rank below which nothing is said
_PART = 0.2  # of a rank's samples: padding shares fewer
_FEWEST_STEPS = 3
Mark = tuple[int, ...]
_WITH_REPLACEMENT = ("WeightedRandomSampler",)


def check(evidence: Evidence) -> Iterator[Found]:
    """By the samples of loaders; without a loader by what goes into the model."""
    ranks = data_parallel_ranks(evidence)
    if not ranks:
        return
    for passes in side_by_side(evidence, ranks, training=True):
        found = _of_passes(evidence, passes)
        if found is not None:
            yield found
            return
    if not any(one.trains for rank in ranks for one in passes_of(evidence.ranks[rank])):
        yield from _of_inputs(evidence, ranks)


def _of_passes(evidence: Evidence, passes: Mapping[int, Pass]) -> Found | None:
    some = next(iter(passes.values()))
    if not are_told_apart(passes.values()):
        return None
    draws = some.loader["sampler"] in _WITH_REPLACEMENT
    if draws and any(one.samples != some.samples for one in passes.values()):
        return None  # ranks that draw by chance draw some samples that others draw, too
    counts = shared(passes)
    least = min(len(one.samples) for one in passes.values())
    if least < _FEWEST or min(counts.values()) < _PART * least:
        return None
    all_of_it = all(counts[rank] == len(one.samples) for rank, one in passes.items())
    # DistributedSampler fills up single samples, Accelerate whole batches.
    padding = len(passes) - 1 if some.replicas is not None else int(some.loader["batch_size"] or 1) * len(passes)
    if not all_of_it and min(counts.values()) <= padding:
        return None
    if all_of_it and max(one.batches for one in passes.values()) < 2:
        return None  # one batch may be all there is: a smoke test
    return _found(evidence, passes, counts, all_of_it)


def _found(evidence: Evidence, passes: Mapping[int, Pass], counts: Mapping[int, int], all_of_it: bool) -> Found:
    ranks = tuple(passes)
    first = passes[ranks[0]]
    in_order = all(one.samples == first.samples for one in passes.values())
    number, of = min((counts[rank], len(one.samples)) for rank, one in passes.items())
    who = name_ranks(ranks)
    who = who[:1].upper() + who[1:]
    if in_order:
        what = f"{who} train on the same {of} samples in the same order"
    elif all_of_it:
        what = f"{who} each train on the same {of} samples"
    else:
        what = (
            f"{who} share samples that should be dealt out: {number} of {of} of a rank's samples another rank took, too"
        )
    do, why_sampler = _remedy(evidence, passes)
    return Found(
        cause="data-not-sharded",
        headline=f"{what} in epoch {first.epoch + 1} (loader at {first.made}{why_sampler}).",
        line=first.made,
        pattern="fix-batch-size-or-data-partition",
        do=do,
        why=f"{len(ranks)} ranks that see the same data do the work of one."
        if all_of_it
        else "Some samples count several times in an epoch, and others are never seen.",
        symptom=NOT_PARALLEL,
        title="Ranks train on the same data",
        explains=("noise-same-on-all-ranks", "samples-left-out"),
        quotes=tuple((rank, one.line, f"first samples of epoch {one.epoch + 1}: {_shown(one)}") for rank, one in list(passes.items())[:4]),
    )  # fmt: skip


def _shown(one: Pass) -> str:
    names = [f"#{index}" if index is not None else f"{row:08x}" for index, row in one.samples[:6]]
    return ", ".join(names)


def _remedy(evidence: Evidence, passes: Mapping[int, Pass]) -> tuple[str, str]:
    """What to change, and what the headline says of the sampler."""
    told = {rank: one.loader.get("told", {}) for rank, one in passes.items()}
    some = next(iter(passes.values()))
    size = len(passes)
    if some.replicas is not None:
        dealt = {one.replicas for one in passes.values()}
        shares = {record.get("rank") for record in told.values()}
        if dealt != {size} or len(shares) < size:
            share = f"share {', '.join(str(one) for one in sorted(shares, key=str))} of {', '.join(str(one) for one in sorted(dealt, key=str))}"
            return (
                "Tell the sampler its own rank: `DistributedSampler(dataset, num_replicas=dist.get_world_size(), rank=dist.get_rank())`.",
                f": its sampler deals {share} on all of them" if len(shares) == 1 else f": its samplers deal {share}",
            )
        seeds = {record.get("seed") for record in told.values()}
        if len(seeds) > 1:
            return (
                "Give the sampler the same `seed` on all ranks: each deals its share out of the order that the seed makes.",
                f": seeds {', '.join(str(seed) for seed in sorted(seeds, key=str))}",
            )
        epochs = {one.set_epoch for one in passes.values()}
        if len(epochs) > 1:
            return "Call `sampler.set_epoch(epoch)` with the same number on all ranks.", ": set_epoch differs"
        return "Give the sampler the same dataset, in the same order, on all ranks.", ""
    if some.loader.get("iterable"):
        return (
            "Let `__iter__` of the dataset yield this rank's part only, `itertools.islice(samples, rank, None, world_size)`,"
            " or use `datasets.distributed.split_dataset_by_node`.",
            ": its IterableDataset is not split by rank",
        )
    if some.loader["sampler"] in _WITH_REPLACEMENT:
        return (
            "Seed what the sampler draws with by rank: `generator=torch.Generator().manual_seed(seed + rank)`.",
            f": {some.loader['sampler']} draws alike on all ranks",
        )
    held = [one.loader.get("content") for one in passes.values()]
    if all(held) and any(one != held[0] for one in held):
        return (
            "Divide the data alike on all ranks: shuffle with the same seed everywhere, then let each take its part, `order[rank::world_size]`.",
            ": each rank divides the data by itself, in another way",
        )
    text = evidence.lines(some.made.rpartition(":")[0])
    if any("Accelerator(" in line for line in text):
        return (
            "Give the loader to `accelerator.prepare(...)` with the model and the optimizer, and go over the one it returns.",
            ": not prepared by Accelerate",
        )
    off = [number for number, line in enumerate(text, 1) if re.search(r"use_distributed_sampler\s*=\s*False", line)]
    if off:
        return (
            "Leave `use_distributed_sampler=False` out, so that Lightning gives the loader a DistributedSampler, or give it one yourself.",
            f": `use_distributed_sampler=False` at line {off[0]}",
        )
    made = [number for number, line in enumerate(text, 1) if "DistributedSampler(" in line and "=" in line]
    if made:
        return (
            "Give the loader the sampler that was made for it: `DataLoader(dataset, sampler=sampler)`, without `shuffle=True`.",
            f": {some.loader['sampler']}; the DistributedSampler of line {made[0]} is not given to it",
        )
    return (
        "Give the loader `sampler=DistributedSampler(dataset)` in place of `shuffle=True`, and call `sampler.set_epoch(epoch)` before"
        " each epoch.",
        f": {some.loader['sampler']}, not a DistributedSampler",
    )


def _of_inputs(evidence: Evidence, ranks: tuple[int, ...]) -> Iterator[Found]:
    """No loader: what goes into the model tells, step by step."""
    marks, lines = _inputs(evidence, ranks)
    seen = {step: at for step, at in marks.items() if len(at) == len(ranks)}
    if len(seen) < _FEWEST_STEPS or len({next(iter(at.values())) for at in seen.values()}) < _FEWEST_STEPS:
        return  # one batch again and again: a smoke test
    where = lines[ranks[0]]
    if all(len(set(at.values())) == 1 for at in seen.values()):
        yield _same_inputs(ranks, len(seen), where)
    elif (found := _lag(seen, ranks)) is not None:
        yield _follows(*found, where)


def _inputs(evidence: Evidence, ranks: tuple[int, ...]) -> tuple[dict[int, dict[int, Mark]], dict[int, str]]:
    """By step and rank: the fingerprints of what went into the model; and each rank's line."""
    marks: dict[int, dict[int, Mark]] = {}
    lines: dict[int, str] = {}
    for rank in ranks:
        for step in evidence.ranks[rank].steps:
            inputs = [one for one in step.all("forward") if one.get("training") and one.get("mark") is not None]
            if inputs:
                marks.setdefault(step.step, {})[rank] = tuple(int(one["mark"]) for one in inputs)
                lines.setdefault(rank, str(inputs[0].get("line", "")))
    return marks, lines


def _lag(seen: Mapping[int, Mapping[int, Mark]], ranks: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """A rank that always gets what another one got the same number of steps before: both, by how many, and how often."""
    for late in ranks:
        if len({at[late] for at in seen.values()}) < len(seen):
            continue  # it comes round again by itself: a few batches over and over
        for early in ranks:
            for lag in range(1, len(ranks)):
                pairs = [(seen[step], seen[step - lag]) for step in seen if step - lag in seen]
                if (
                    early != late
                    and len(pairs) >= _FEWEST_STEPS
                    and all(now[late] == before[early] for now, before in pairs)
                ):
                    return late, early, lag, len(pairs)
    return None


def _same_inputs(ranks: tuple[int, ...], count: int, where: str) -> Found:
    return Found(
        cause="data-not-sharded",
        headline=f"{all_of(len(ranks), 'ranks').capitalize()} train on the same batches: the model got the same input on every rank in all {count} "
        f"steps that were looked at ({where}).",
        line=where,
        pattern="fix-batch-size-or-data-partition",
        do="Take another part of the data on each rank: `data[rank::world_size]`, or a DataLoader with a DistributedSampler. Where data"
        " are generated, seed their generator with the rank.",
        why=f"{len(ranks)} ranks that see the same data do the work of one.",
        symptom=NOT_PARALLEL,
        title="Ranks train on the same data",
        explains=("noise-same-on-all-ranks",),
    )


def _follows(late: int, early: int, lag: int, count: int, where: str) -> Found:
    return Found(
        cause="data-overlaps-between-ranks",
        headline=f"Rank {late} trains on what rank {early} trained on {'one step' if lag == 1 else f'{lag} steps'} before, in all {count} steps that were looked at "
        f"({where}): each rank moves on by its own batch, not by those of all ranks.",
        line=where,
        pattern="fix-batch-size-or-data-partition",
        do="Advance the position by the batches of all ranks: `position += batch_size * length * world_size`, with `rank` batches as the offset at the start.",
        why="Nearly every sample is trained on once by each rank, and an epoch takes as many steps as on one device.",
        symptom=NOT_PARALLEL,
        title="Ranks read one another's data",
        explains=("noise-same-on-all-ranks",),
    )  # fmt: skip
