"""What ranks must agree on and do not (the size of the world, the weights of the model), or must differ in and do not: their samples.

Such a job trains to its end without an error; only comparing the ranks shows that it did not train together.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from phalanx.blame.quorum import odd_ones
from phalanx.diagnosis.claim import Claim, Proof
from phalanx.diagnosis.history import History
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Confidence, Event, EventKind, Role
from phalanx.sources import FileSurvey
from phalanx.sources.text import NUMBER

_FEWEST = 2  # times that ranks must differ: one line may be cut or printed before the first synchronisation
_AT_THE_END = "after the last step"
_OF_A_PART = re.compile(r"shard|\blocal\b|partition|\bstage\b|expert", re.I)  # ranks that hold parts differ rightly
# The call that joins the group is missing, the launcher is another than the library looks for, or it belongs to another MPI.
_OF_LONE_PROCESSES = ("fix-distributed-api-usage", "fix-communication-configuration", "fix-dependency-version")


def find_disagreements(history: History) -> list[Claim]:
    """Claims that no single rank's log could make."""
    shared = _samples_alike(history) or _same_order_again(history)
    return [*_each_alone(history), *_weights_differ(history), *shared]


def _each_alone(history: History) -> list[Claim]:
    """Several processes, each of which states a world of one."""
    stated = {file.rank: file for file in history.seen.files if file.rank is not None and file.world_sizes}
    stated = stated or _marked_by_launcher(history)
    if len(stated) < 2 or any(set(file.world_sizes) != {1} for file in stated.values()):
        return []
    events = [
        Event(EventKind.LINE, "this process states a world of size 1", file.name, 0, rank, source="survey")
        for rank, file in sorted(stated.items())
        if rank is not None
    ]
    summary = (
        "{ranks} each state a world of size 1: they never joined one group, so each trains the whole model on its own."
    )
    proofs = [Proof(event, Role.ROOT) for event in events]
    title, cause = "Every process trains by itself", "each-process-trains-alone"
    return [_claim("perf.unexpected-parallelization-or-device", cause, title, summary, proofs, _OF_LONE_PROCESSES)]


def _marked_by_launcher(history: History) -> dict[int, FileSurvey]:
    """Ranks that train in one file whose launcher counts them, where the size was stated as often as there are ranks, or more often."""
    for file in history.seen.files:
        ranks = [rank for rank, entry in file.ranks.items() if rank is not None and entry.metrics is not None]
        if file.rank is None and len(file.world_sizes) >= len(ranks) > 1:
            return dict.fromkeys(ranks, file)
    return {}


def _samples_alike(history: History) -> list[Claim]:
    """Several ranks print the same samples, in the same order, for the same place in training."""
    printed: dict[tuple[str, object], dict[int, Event]] = defaultdict(dict)
    for event in history.seen.events:
        if event.source == "samples" and event.rank is not None:
            printed[(str(event.data["what"]), event.data["at"])].setdefault(event.rank, event)
    seen = [by_rank for by_rank in printed.values() if len(by_rank) > 1]
    if not seen or any(len({event.data["value"] for event in by_rank.values()}) > 1 for by_rank in seen):
        return []
    summary = "{ranks} print the same samples in the same order: the data are not split among the ranks, so each trains on all of them."
    proofs = [Proof(event, Role.ROOT) for event in seen[0].values()]
    patterns = ("fix-distributed-api-usage", "fix-batch-size-or-data-partition", "fix-dataset-api-usage")
    title = "All ranks train on the same samples"
    return [_claim("perf.unexpected-parallelization-or-device", "data-not-sharded", title, summary, proofs, patterns)]


def _same_order_again(history: History) -> list[Claim]:
    """Ranks take their samples in the same mixed order in every epoch. Data in sorted order were not meant to be mixed."""
    printed: dict[tuple[str, int | None, int], dict[int, Event]] = defaultdict(dict)
    for event in history.seen.events:
        if event.source == "samples" and event.data["at"] is not None and event.data["at"][0] >= 0:
            epoch, step = event.data["at"]
            printed[(str(event.data["what"]), event.rank, step)].setdefault(epoch, event)
    seen = [by_epoch for by_epoch in printed.values() if len(by_epoch) >= _FEWEST]
    if not seen or any(len({event.data["value"] for event in by_epoch.values()}) > 1 for by_epoch in seen):
        return []
    numbers = [int(number) for number in NUMBER.findall(str(next(iter(seen[0].values())).data["value"]))]
    if numbers == sorted(numbers):
        return []
    summary = "{ranks} take their samples in the same order in every epoch: the sampler is not told the epoch, so it mixes the data once and for all."
    proofs = [Proof(event, Role.ROOT) for by_epoch in seen for event in by_epoch.values()]
    patterns = ("fix-distributed-api-usage", "fix-dataset-api-usage", "fix-behavior-logic")
    title = "Every epoch has the same order of samples"
    return [_claim("perf.unexpected-intermediate-result", "sampler-not-reshuffled", title, summary, proofs, patterns)]


def _weights_differ(history: History) -> list[Claim]:
    """The same quantity of the model, printed by several ranks for the same step, with different values."""
    printed: dict[tuple[str, object], dict[int, Event]] = defaultdict(dict)
    for event in history.seen.events:
        if event.source == "checksum" and event.rank is not None and not _OF_A_PART.search(event.text):
            at = event.data["at"] or (_AT_THE_END if _is_after_training(event, history) else None)
            if at is not None:
                printed[(str(event.data["what"]), at)].setdefault(event.rank, event)
    differing = {
        key: by_rank for key, by_rank in printed.items() if len({event.data["value"] for event in by_rank.values()}) > 1
    }
    if len(differing) < _FEWEST and all(at != _AT_THE_END for _, at in differing):
        return []
    last = list(differing.values())[-1]
    what = next(iter(last.values())).data["what"]
    odd = _odd_ones(list(differing.values()))
    told = (
        f"The {what} of {{ranks}} is not that of all other ranks for the same step: the model there went another way."
        if odd
        else f"{{ranks}} print a different {what} for the same step: their models were not made equal at the start, or drift apart."
    )
    claim = _claim(
        "perf.unexpected-intermediate-result",
        "weights-differ-between-ranks",
        "The ranks' models differ",
        told,
        [Proof(event, Role.ROOT if rank in odd or not odd else Role.SUPPORTS) for rank, event in last.items()],
    )
    return [replace(claim, blame=Blame.ODD) if odd else claim]


def _odd_ones(differing: list[dict[int, Event]]) -> frozenset[int]:
    """The ranks, fewer than half, that every time alone have other values than all the rest, which agree."""
    found = {
        odd_ones({rank: str(event.data["value"]) for rank, event in by_rank.items()}, by_rank) for by_rank in differing
    }
    return found.pop() if len(found) == 1 else frozenset()


def _is_after_training(event: Event, history: History) -> bool:
    """The rank trained, and had taken its last step when it printed this: by then all models are the same."""
    file = history.file_of(event)
    entry = file.ranks.get(event.rank) if file is not None else None
    return entry is not None and entry.last_progress is not None and entry.last_progress < event.line


def _claim(
    symptom: str, cause: str, title: str, summary: str, proofs: list[Proof], patterns: tuple[str, ...] = ()
) -> Claim:
    return Claim(
        rule=None,
        symptom=symptom,
        cause=cause,
        title=title,
        summary=summary,
        depth=Claims.CAUSE,
        blame=Blame.NOBODY,
        fatal=False,
        priority=50,
        confidence=Confidence.LIKELY,
        proofs=tuple(proofs),
        patterns=patterns,
    )
