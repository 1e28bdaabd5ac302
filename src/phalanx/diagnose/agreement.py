"""What ranks must agree on and do not: the size of the world, and the weights of the model.

Such a job trains to its end without an error; only comparing the ranks shows that it did not train together.
"""

from __future__ import annotations

from collections import defaultdict

from phalanx.diagnose.claim import Claim, Proof
from phalanx.diagnose.history import History
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Confidence, Event, EventKind, Role

_FEWEST = 2  # times that ranks must differ: one line may be cut or printed before the first synchronisation
_AT_THE_END = "after the last step"


def find_disagreements(history: History) -> list[Claim]:
    """Claims that no single rank's log could make."""
    return [*_each_alone(history), *_weights_differ(history)]


def _each_alone(history: History) -> list[Claim]:
    """Several processes, each of which states a world of one."""
    stated = {file.rank: file for file in history.seen.files if file.rank is not None and file.world_sizes}
    if len(stated) < 2 or any(set(file.world_sizes) != {1} for file in stated.values()):
        return []
    proofs = [
        Proof(
            Event(EventKind.LINE, "this process states a world of size 1", file.name, 0, rank, source="survey"),
            Role.ROOT,
        )
        for rank, file in sorted(stated.items())
        if rank is not None
    ]
    return [
        _claim(
            "perf.unexpected-parallelization-or-device",
            "each-process-trains-alone",
            "Every process trains by itself",
            "{ranks} each state a world of size 1: they never joined one group, so each trains the whole model on its own.",
            proofs,
        )
    ]


def _weights_differ(history: History) -> list[Claim]:
    """The same quantity of the model, printed by several ranks for the same step, with different values."""
    printed: dict[tuple[str, object], dict[int, Event]] = defaultdict(dict)
    for event in history.seen.events:
        if event.source == "checksum" and event.rank is not None:
            at = event.data["at"] or (_AT_THE_END if _is_after_training(event, history) else None)
            if at is not None:
                printed[(str(event.data["what"]), at)].setdefault(event.rank, event)
    differing = {
        key: by_rank for key, by_rank in printed.items() if len({event.data["value"] for event in by_rank.values()}) > 1
    }
    if len(differing) < _FEWEST and all(at != _AT_THE_END for _, at in differing):
        return []
    last = list(differing.values())[-1]
    proofs = [Proof(event, Role.ROOT) for event in last.values()]
    what = next(iter(last.values())).data["what"]
    return [
        _claim(
            "perf.unexpected-intermediate-result",
            "weights-differ-between-ranks",
            "The ranks' models differ",
            f"{{ranks}} print a different {what} for the same step: their models were not made equal at the start, or drift apart.",
            proofs,
        )
    ]


def _is_after_training(event: Event, history: History) -> bool:
    """The rank trained, and had taken its last step when it printed this: by then all models are the same, unless each
    rank holds a part."""
    if "shard" in event.text.lower():
        return False
    file = history.file_of(event)
    entry = file.ranks.get(event.rank) if file is not None else None
    return entry is not None and entry.last_progress is not None and entry.last_progress < event.line


def _claim(symptom: str, cause: str, title: str, summary: str, proofs: list[Proof]) -> Claim:
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
        proofs=proofs,
    )
