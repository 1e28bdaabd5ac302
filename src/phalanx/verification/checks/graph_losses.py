"""TensorFlow: losses that are averaged over a replica's batch and summed over replicas, and metrics of one worker."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model import Confidence
from phalanx.verification.evidence import Evidence, RankEvidence
from phalanx.verification.found import Found
from phalanx.verification.graphs import looks_of, samples_of, trained


def check(evidence: Evidence) -> Iterator[Found]:
    """Of jobs under a strategy of several workers."""
    if len(evidence.ranks) < 2 or not all(one.all("strategy") for one in evidence.ranks.values()):
        return
    yield from _summed(evidence)
    yield from _of_one_worker(evidence)


def _summed(evidence: Evidence) -> Iterator[Found]:
    """By the graph of the loss, the reduction of its gradients, and the size of a rank's batch."""
    one = next(iter(evidence.ranks.values()))
    sums = {str(at["red"]) for at in one.all("reduced") if at["what"] == "grad"}
    tapes = [at for at in one.all("tape") if at["divisor"] is not None]
    sizes = {len(batch) for batches in samples_of(one).values() for batch in batches[:1] if batch}
    if sums != {"SUM"} or not tapes or len(sizes) != 1:
        return
    local = sizes.pop()
    means = [_is_local_mean(str(at["kind"]), float(at["divisor"]), local) for at in tapes]
    if not all(means):
        return
    line = str(tapes[0]["line"]) or _mean_in(evidence)
    yield Found(
        cause="gradients-summed-not-averaged",
        headline=f"Each replica's loss is the mean over its own batch of {local}{f' ({line})' if line else ''}, and the gradients of {evidence.size} replicas are summed: they are {evidence.size}.00 × too large.",
        line=line,
        pattern="fix-loss-function",
        do=f"Divide by the global batch: `tf.nn.compute_average_loss(per_example_loss, global_batch_size={local * evidence.size})`, or by `strategy.num_replicas_in_sync` after the mean.",
        why="A strategy sums gradients over replicas; the loss of each must be its part of the mean over the global batch.",
        title="Loss divided by the replica's batch",
    )  # fmt: skip


def _mean_in(evidence: Evidence) -> str:
    """The only mean in the script, where a compiled function does not say which of its lines it is."""
    one = next(iter(evidence.ranks.values()))
    made = [str(at["line"]) for at in one.records if at.get("line")]
    name = made[0].rpartition(":")[0] if made else ""
    means = [number for number, text in enumerate(evidence.lines(name), 1) if "reduce_mean(" in text]
    return f"{name}:{means[0]}" if len(means) == 1 else ""


def _is_local_mean(kind: str, divisor: float, local: int) -> bool:
    return (kind == "mean" and abs(divisor - 1) < 1e-6) or (kind == "sum" and abs(divisor - local) < 1e-6)


def _of_one_worker(evidence: Evidence) -> Iterator[Found]:
    """A dataset that nobody trains on, dealt out to the workers, of whose results each takes its own and joins none."""
    one = next(iter(evidence.ranks.values()))
    for dataset, batches in samples_of(one).items():
        span = _evaluation(evidence, one, dataset)
        if span is None or _is_shared(evidence, dataset):
            continue
        mine = [at for at in one.all("local") if span[0] < int(at["n"])]
        joined = [at for at in one.all("joined") if span[0] < int(at["n"])]
        if not mine or joined:
            continue
        line = str(mine[0]["line"])
        total = sum(len(batch) for batch in batches)
        yield Found(
            cause="metric-of-one-share",
            headline=f"Each worker evaluates its own share ({total} samples on rank 0) and takes its own results only ({line}): nothing is reduced over the workers, and what is reported is the metric of one share.",
            line=line,
            pattern="fix-distributed-api-usage",
            do='Reduce what the metric is made of: `strategy.reduce("sum", value, axis=None)`, or update a `tf.keras.metrics` object made in `strategy.scope()`.',
            why="`experimental_local_results` gives the values of this worker's replicas.",
            title="A metric covers one worker's samples only",
            confidence=Confidence.LIKELY,
        )  # fmt: skip
        return


def _evaluation(evidence: Evidence, one: RankEvidence, dataset: int) -> tuple[int, int] | None:
    """From which call to which a dataset is taken without a change of weights, after they were trained."""
    calls = [int(at["n"]) for at in one.all("taken") if int(at["d"]) == dataset]
    looks = looks_of(evidence)
    if not calls or min(calls) == 0 or not trained([look for look in looks if look.number <= min(calls)]):
        return None
    span = [look for look in looks if min(calls) <= look.number <= max(calls)]
    return None if len(span) < 2 or trained(span) else (min(calls), max(calls))


def _is_shared(evidence: Evidence, dataset: int) -> bool:
    """Whether all workers evaluate the same samples."""
    each = [{row for batch in samples_of(one).get(dataset, []) for row in batch} for one in evidence.ranks.values()]
    return any(each[0] & other for other in each[1:])
