"""What ranks must agree on and do not (the size of the world, the weights of the model), or must differ in and do not: their samples.

Such a job trains to its end without an error; only comparing the ranks shows that it did not train together.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace

from phalanx.blame.quorum import odd_ones
from phalanx.diagnosis.claim import Claim, Proof
from phalanx.diagnosis.history import History
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Confidence, Event, EventKind, Role
from phalanx.sources import FileSurvey
from phalanx.sources.metrics import Reading
from phalanx.sources.text import NUMBER, without_numbers

_FEWEST = 2  # times that ranks must differ: one line may be cut or printed before the first synchronisation
_AT_THE_END = "after the last step"
_OF_A_PART = re.compile(r"shard|\blocal\b|partition|\bstage\b|expert", re.I)  # ranks that hold parts differ rightly
_OF_A_PROCESS = re.compile(r"host|node|proc|worker|pod|machine|task|trainer", re.I)  # names of files
# The call that joins the group is missing, the launcher is another than the library looks for, or it belongs to another MPI.
_OF_LONE_PROCESSES = ("fix-distributed-api-usage", "fix-communication-configuration", "fix-dependency-version")


def find_disagreements(history: History) -> list[Claim]:
    """Claims that no single rank's log could make."""
    alone = _each_alone(history) or _several_alone(history) or _hosts_alone(history)
    shared = (
        _samples_alike(history)
        or _samples_counted_again(history)
        or _each_takes_all(history)
        or _same_order_again(history)
    )
    return [*alone, *_weights_differ(history), *shared]


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
    return [_alone("{ranks}", events)]


def _hosts_alone(history: History) -> list[Claim]:
    """The same for files that are named after hosts or processes, and so not after ranks."""
    files = [file for file in history.seen.files if file.rank is None and file.world_sizes]
    names = {without_numbers(file.name) for file in files}
    trained = all(any(entry.metrics is not None for entry in file.ranks.values()) for file in files)
    if len(files) < 2 or len(names) != 1 or not _OF_A_PROCESS.search(names.pop()) or not trained:
        return []
    if any(set(file.world_sizes) != {1} for file in files):
        return []
    text = "this process states a world of size 1"
    return [
        _alone("The processes", [Event(EventKind.LINE, text, file.name, 0, None, source="survey") for file in files])
    ]


def _marked_by_launcher(history: History) -> dict[int, FileSurvey]:
    """Ranks that train in one file whose launcher counts them, where the size was stated as often as there are ranks, or more often."""
    for file in history.seen.files:
        ranks = [rank for rank, entry in file.ranks.items() if rank is not None and entry.metrics is not None]
        if file.rank is None and len(file.world_sizes) >= len(ranks) > 1:
            return dict.fromkeys(ranks, file)
    return {}


def _several_alone(history: History) -> list[Claim]:
    """Several processes that wrote into one file, each the only one of its world. One process states its size
    once, and then each epoch once; where both are said twice, in the same words, two processes said it."""
    for file in history.seen.files:
        if file.rank is not None or len(file.world_sizes) < 2 or set(file.world_sizes) != {1}:
            continue
        entries = [entry for entry in file.ranks.values() if entry.metrics is not None]
        if len(entries) == 1 and entries[0].metrics is not None and _is_told_twice(entries[0].metrics.of("loss")):
            text = f"{len(file.world_sizes)} processes state a world of size 1, and each reports the same epochs"
            return [_alone("The processes", [Event(EventKind.LINE, text, file.name, 0, None, source="survey")])]
    return []


def _is_told_twice(readings: list[Reading]) -> bool:
    """Each place of the course was reported by as many lines of the same words as any other, and by more than one."""
    told = Counter((reading.at, without_numbers(reading.text)) for reading in readings)
    return len({at for at, _ in told}) > 1 and set(told.values()) != {1} and len(set(told.values())) == 1


def _alone(who: str, events: list[Event]) -> Claim:
    return _claim(
        "perf.unexpected-parallelization-or-device",
        "each-process-trains-alone",
        "Every process trains by itself",
        f"{who} each state a world of size 1: they never joined one group, so each trains the whole model on its own.",
        [Proof(event, Role.ROOT) for event in events],
        _OF_LONE_PROCESSES,
    )


def _samples_alike(history: History) -> list[Claim]:
    """Several ranks print the same samples, in the same order, for the same place in training."""
    printed: dict[tuple[str, object], dict[int, Event]] = defaultdict(dict)
    for event in history.seen.events:
        if event.source == "samples" and event.rank is not None:
            printed[(str(event.data["what"]), event.data["at"])].setdefault(event.rank, event)
    seen = [by_rank for by_rank in printed.values() if len(by_rank) > 1]
    if not seen or any(len({event.data["value"] for event in by_rank.values()}) > 1 for by_rank in seen):
        return []
    return [_not_sharded("{ranks} print the same samples in the same order", list(seen[0].values()))]


def _samples_counted_again(history: History) -> list[Claim]:
    """Every epoch takes as many samples over all ranks as the data set has, times the ranks."""
    sizes = {event.data["value"]: event for event in history.seen.events if event.source == "data size"}
    totals = [event for event in history.seen.events if event.source == "data total"]
    counted = {event.data["value"] for event in totals}
    if len(sizes) != 1 or len(counted) != 1 or len({event.data["at"] for event in totals}) < _FEWEST:
        return []
    (size, stated), total = next(iter(sizes.items())), counted.pop()
    times, rest = divmod(total, size)
    if rest or times < 2 or len(history.world.all_ranks) not in (0, 1, times):
        return []
    what = f"Every epoch takes {total} samples of a data set that has {size}"
    return [_not_sharded(what, [stated, *totals])]


def _each_takes_all(history: History) -> list[Claim]:
    """Every rank reports for every epoch as many samples as the data set has."""
    sizes = {event.data["value"]: event for event in history.seen.events if event.source == "data size"}
    own: dict[object, dict[int | None, Event]] = defaultdict(dict)
    for event in history.seen.events:
        if event.source == "data own" and event.data["at"][0] >= 0 and event.data["at"][1] < 0:
            own[event.data["at"]][event.rank] = event
    told = [by_rank for by_rank in own.values() if len(by_rank) > 1 and by_rank.keys() >= history.world.all_ranks]
    counted = {event.data["value"] for by_rank in told for event in by_rank.values()}
    if len(sizes) != 1 or len(told) < _FEWEST or counted != sizes.keys():
        return []
    size, stated = next(iter(sizes.items()))
    what = f"Every rank takes {size} samples in an epoch, which is all of the data set"
    return [_not_sharded(what, [stated, *(event for by_rank in told for event in by_rank.values())])]


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


def _not_sharded(what: str, events: list[Event]) -> Claim:
    return _claim(
        "perf.unexpected-parallelization-or-device",
        "data-not-sharded",
        "All ranks train on the same samples",
        f"{what}: the data are not split among the ranks, so each trains on all of them.",
        [Proof(event, Role.ROOT) for event in events],
        ("fix-distributed-api-usage", "fix-batch-size-or-data-partition", "fix-dataset-api-usage"),
    )


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
