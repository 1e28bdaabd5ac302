"""Which samples each rank took: the passes over loaders, and how many of their samples ranks share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from phalanx.verification.evidence import Evidence, RankEvidence, Record
from phalanx.verification.replicas import calls_of, is_model_parallel

Sample = tuple[int | None, int]  # the sampler's index, where there is one, and the fingerprint of what it gave


@dataclass(frozen=True)
class Pass:
    """One iteration over a loader on one rank, as far as it went."""

    loader: Record
    epoch: int
    line: str
    set_epoch: int | None
    samples: tuple[Sample, ...] = ()
    batches: int = 0
    trains: bool = False  # an optimizer stepped on one of its batches
    is_whole: bool = False  # it went to the loader's end
    evals: tuple[Record, ...] = field(default=())  # forward passes without gradients on its batches
    after: int = 0  # where in the rank's records it stood at its last batch

    @property
    def ids(self) -> tuple[int | None, ...]:
        """The sampler's indices, in order."""
        return tuple(index for index, _ in self.samples)

    @property
    def number(self) -> int:
        """The loader's."""
        return int(self.loader["l"])

    @property
    def made(self) -> str:
        """The line that makes the loader; where that is not the user's, the one that goes over it."""
        return str(self.loader.get("made") or self.line)

    @property
    def replicas(self) -> int | None:
        """Among how many the sampler deals, where it says so."""
        told = self.loader.get("told", {}).get("num_replicas")
        return told if isinstance(told, int) else None


@lru_cache(maxsize=256)
def passes_of(one: RankEvidence) -> tuple[Pass, ...]:
    """All passes over all loaders, in order."""
    loaders: dict[int, Record] = {}
    found: dict[tuple[int, int], Pass] = {}
    latest: tuple[int, int] | None = None  # whose batch came last
    for place, record in enumerate(one.records):
        kind = record["k"]
        if kind == "loader":
            loaders[int(record["l"])] = record
        elif kind == "epoch" and int(record["l"]) in loaders:
            made = Pass(loaders[int(record["l"])], int(record["e"]), str(record["line"]), record.get("set_epoch"))
            found[made.number, made.epoch] = made
        elif kind in ("batch", "exhausted") and (int(record["l"]), int(record["e"])) in found:
            key = int(record["l"]), int(record["e"])
            found[key] = (
                _with_batch(found[key], record, place) if kind == "batch" else replace(found[key], is_whole=True)
            )
            latest = key if kind == "batch" or found[key].trains else None
        elif kind == "step" and latest is not None:
            found[latest] = replace(found[latest], trains=True)
        elif kind == "eval" and latest is not None:
            found[latest] = replace(found[latest], evals=(*found[latest].evals, record))
    return tuple(found.values())


def _with_batch(one: Pass, record: Record, place: int) -> Pass:
    rows, ids = record.get("rows") or [], record.get("ids")
    if ids is not None and len(ids) != len(rows):
        ids = None  # what was collated is not one row a sample
    samples = tuple(zip(ids if ids is not None else [None] * len(rows), rows, strict=True))
    return replace(one, samples=one.samples + samples, batches=one.batches + 1, after=place)


def side_by_side(evidence: Evidence, ranks: Sequence[int], *, training: bool) -> Iterator[dict[int, Pass]]:
    """The passes of one number over one loader on all of these ranks, where each of them trains, or none does."""
    by_rank = {rank: {(one.number, one.epoch): one for one in passes_of(evidence.ranks[rank])} for rank in ranks}
    for key in sorted(set.intersection(*(set(passes) for passes in by_rank.values()))):
        found = {rank: passes[key] for rank, passes in by_rank.items()}
        if all(one.trains is training and one.samples for one in found.values()):
            yield found


def shared(passes: Mapping[int, Pass]) -> dict[int, int]:
    """By rank: how many of its samples another rank took, too. A sample is known by its looks, and where many look alike by its
    index, too: an index alone may mean another sample in another rank's dataset."""
    by_looks = all(_look_different(one) for one in passes.values())
    taken = {
        rank: Counter((None, row) if by_looks else (index, row) for index, row in one.samples)
        for rank, one in passes.items()
    }
    return {
        rank: sum(
            count
            for sample, count in own.items()
            if any(sample in other for who, other in taken.items() if who != rank)
        )
        for rank, own in taken.items()
    }


def _look_different(one: Pass) -> bool:
    return len({row for _, row in one.samples}) >= 0.9 * len(one.samples)


def are_told_apart(passes: Iterable[Pass]) -> bool:
    """Whether samples can be known again: by an index, or because hardly two of a rank look alike."""
    return all(all(index is not None for index in one.ids) or _look_different(one) for one in passes)


def data_parallel_ranks(evidence: Evidence) -> tuple[int, ...]:
    """The ranks that should train on different data, where that is certain: members of one DDP or FSDP, or ranks that exchange
    gradients and no activations."""
    ranks = tuple(sorted(evidence.ranks))
    if len(ranks) < 2:
        return ()
    wrapped = {tuple(record["members"]) for one in evidence.ranks.values() for record in one.wrapped.values()}
    if wrapped:
        members = next(iter(wrapped))
        return tuple(rank for rank in members if rank in evidence.ranks) if len(wrapped) == 1 else ()
    if all(_is_fully_sharded(one) for one in evidence.ranks.values()):
        return ranks
    return ranks if _exchanges_gradients(evidence) and not is_model_parallel(evidence) else ()


def _exchanges_gradients(evidence: Evidence) -> bool:
    """Ranks that do not may train models of their own, on the same data, on purpose."""
    calls = [call for one in evidence.ranks.values() for call in calls_of(one.events)]
    return evidence.framework == "horovod" or any(str(call["what"]).startswith("grad") for call in calls)


def _is_fully_sharded(one: RankEvidence) -> bool:
    """FSDP over one dimension: with a second one, ranks may share their data."""
    kinds = {str(record["kind"]) for record in one.all("model")}
    if not kinds & {"fsdp1", "fsdp2"}:
        return False
    shards = {parameter.shard for held in one.optimizers.values() for parameter in held.parameters}
    return all(shard is None or shard == "flat" or len(shard[0]) == 1 for shard in shards)
