"""TensorFlow and Horovod with TensorFlow: workers whose variables are not those of one model, and workers on the same data."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model.ranks import all_of
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import NOT_PARALLEL, Found
from phalanx.verification.graphs import Look, looks_of, moves_together, samples_of, trained

_FEWEST = 3


def check(evidence: Evidence) -> Iterator[Found]:
    """Weights at the same places of the loops; then what the loops were given."""
    looks = looks_of(evidence)
    places = trained(looks)
    if len(looks) < _FEWEST or not places:
        return
    same = _same_samples(evidence)
    apart = [place for place in looks[-1].apart() if place in places]
    if apart and moves_together(looks, places):
        yield _from_the_start(evidence, looks[0], apart)
    elif apart:
        yield _never(evidence, looks, apart)
    if same is not None and not (apart and not moves_together(looks, places)):
        yield _same_data(evidence, *same)


def _is_horovod(evidence: Evidence) -> bool:
    return evidence.framework == "horovod"


def _from_the_start(evidence: Evidence, first: Look, apart: list[int]) -> Found:
    do = (
        "Call `hvd.broadcast_variables(model.variables, root_rank=0)` (and those of the optimizer) after the first step, or use"
        " `BroadcastGlobalVariablesCallback(0)`."
        if _is_horovod(evidence)
        else "Make the variables in `strategy.scope()`, which copies rank 0's to all workers, or seed all workers alike."
    )
    return Found(
        cause="initial-weights-differ",
        headline=f"The {len(evidence.ranks)} ranks started from different weights, although their updates are the same: {len(apart)} of {len(first.names)} variables differ, first `{first.names[apart[0]]}`.",
        line=first.line,
        pattern="fix-consistency-between-devices",
        do=do,
        why="Equal gradients on unequal weights never bring the ranks together: each trains a model of its own.",
        title="Replicas do not start from the same weights",
        explains=("gradients-never-synchronised",),
    )  # fmt: skip


def _never(evidence: Evidence, looks: list[Look], apart: list[int]) -> Found:
    one = next(iter(evidence.ranks.values()))
    made = next((str(at["line"]) for at in one.all("strategy")), "")
    if _is_horovod(evidence):
        talk, do = (
            "no gradient is reduced",
            "Wrap the tape, `tape = hvd.DistributedGradientTape(tape)`, or the optimizer, `hvd.DistributedOptimizer(optimizer)`, and broadcast the variables from rank 0.",
        )
    elif made:
        talk, do = (
            f"the strategy made at {made} reduces nothing for these variables",
            "Make the model and its variables in `with strategy.scope():`, and run the step by `strategy.run`, with the optimizer's `apply_gradients` inside.",
        )
    else:
        talk, do = (
            "no strategy is made",
            "Make `strategy = tf.distribute.MultiWorkerMirroredStrategy()` first, the variables in `strategy.scope()`, and run the step by `strategy.run`.",
        )
    names = looks[-1].names
    return Found(
        cause="gradients-never-synchronised",
        headline=f"{len(evidence.ranks)} ranks each train a model of their own: {talk}, and after {looks[-1].number} calls {len(apart)} of {len(names)} variables differ, first `{names[apart[0]]}`.",
        line=made or looks[-1].line,
        pattern="fix-distributed-api-usage",
        do=do,
        why="Without a reduction of gradients every rank learns from its own part of the data only, and one of the models is saved.",
        symptom=NOT_PARALLEL,
        title="Ranks train without synchronising",
        explains=("initial-weights-differ",),
    )  # fmt: skip


def _same_samples(evidence: Evidence) -> tuple[int, int] | None:
    """How many batches all ranks took alike, and of how many samples, where that is all of several different ones."""
    each = [samples_of(one) for one in evidence.ranks.values()]
    for number in sorted(set.intersection(*(set(found) for found in each))) if len(each) > 1 else ():
        count = min(len(found[number]) for found in each)
        batches = each[0][number][:count]
        rows = {row for batch in batches for row in batch}
        if count < _FEWEST or len(set(batches)) < _FEWEST or len(rows) < _FEWEST:
            continue
        if all(found[number][:count] == batches for found in each[1:]) and _is_trained_on(evidence, number):
            return count, len(rows)
    return None


def _is_trained_on(evidence: Evidence, dataset: int) -> bool:
    """Weights change while this dataset is taken: every rank may evaluate all of another one."""
    one = next(iter(evidence.ranks.values()))
    calls = [int(at["n"]) for at in one.all("taken") if int(at["d"]) == dataset] or [0, 1 << 30]
    looks = [look for look in looks_of(evidence) if min(calls) <= look.number <= max(calls)]
    return bool(trained(looks))


def _same_data(evidence: Evidence, count: int, samples: int) -> Found:
    one = next(iter(evidence.ranks.values()))
    line = next((str(at["line"]) for at in [*one.all("taken"), *one.all("called")]), "")
    do = (
        "Give each rank its part: `dataset.shard(hvd.size(), hvd.rank())` before shuffling."
        if _is_horovod(evidence)
        else "Give each worker its part: `dataset.shard(context.num_input_pipelines, context.input_pipeline_id)` in the function of `distribute_datasets_from_function`, or"
        " let `strategy.experimental_distribute_dataset` shard it (AutoShardPolicy.DATA)."
    )
    return Found(
        cause="data-not-sharded",
        headline=f"{all_of(len(evidence.ranks), 'ranks').capitalize()} train on the same data: the first {count} batches ({samples} samples) are the same on every rank ({line}).",
        line=line,
        pattern="fix-batch-size-or-data-partition",
        do=do,
        why=f"{len(evidence.ranks)} ranks that see the same data do the work of one.",
        symptom=NOT_PARALLEL,
        title="Ranks train on the same data",
    )  # fmt: skip
