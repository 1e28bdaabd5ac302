"""Two runs side by side: the steps of a resumed one, and the same steps of one that went on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phalanx.verification.evidence import Evidence, RankEvidence, Record, Step
from phalanx.verification.replicas import distance

LOOSE = 1e-5  # DDP sums in another order after its first step: later steps agree only so far


@dataclass(frozen=True)
class Saved:
    """What the examination of the checkpoint's files said; None where none was found."""

    name: str = ""
    states: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def words(self, state: str, what: str) -> str:
        """Whether the files hold a state."""
        if not self.name:
            return ""
        if state in self.states:
            return f"; {self.name} holds {what}, so the script does not load it, or loads it too early"
        return f"; {self.name} does not hold {what}{' under a usual name' if state == 'sampler' else ''}"


@dataclass(frozen=True)
class Resumption:
    """The runs: `going_on` is the one that was not interrupted, `step` the number of steps it had made when it saved."""

    going_on: Evidence
    resumed: Evidence
    step: int
    saved: Saved
    save_line: str = ""
    load_line: str = ""


def saves_of(evidence: Evidence) -> list[tuple[int, Record]]:
    """Every save of rank 0 or of whichever rank saves, with the steps made by then."""
    found = [(int(one["step"]), one) for rank in evidence.ranks.values() for one in rank.all("save")]
    named = [pair for pair in found if pair[1]["path"]]  # what is sent to other ranks is saved to memory, too
    return sorted(named or found, key=lambda pair: pair[0])


def differs(one: Evidence, two: Evidence, until: int) -> str:
    """Why two runs of the same script are not the same up to a step; empty if they are."""
    for rank, first in one.ranks.items():
        second = two.ranks.get(rank)
        if second is None:
            return f"rank {rank} left no evidence"
        pairs = zip(first.steps, second.steps, strict=False)
        for mine, other in ((a, b) for a, b in pairs if a.step < until):
            if apart(mine.before, other.before, LOOSE) or batches_at(first, mine.step) != batches_at(
                second, other.step
            ):
                return f"rank {rank} has other weights or other data at step {mine.step + 1}"
    return ""


def by_step(evidence: RankEvidence | None) -> dict[tuple[int, int], Step]:
    return {(one.optimizer, one.step): one for one in evidence.steps} if evidence is not None else {}


def pairs_of(found: Resumption) -> Iterator[tuple[int, Step, Step]]:
    """Rank, its step in the resumed run, and the same step of the run that went on, in order of steps."""
    rows = []
    for rank, resumed in found.resumed.ranks.items():
        there = by_step(found.going_on.ranks.get(rank))
        for mine in resumed.steps:
            other = there.get((mine.optimizer, mine.step + found.step))
            if other is not None:
                rows.append((mine.step, rank, mine, other))
    for _, rank, mine, other in sorted(rows, key=lambda row: row[:2]):
        yield rank, mine, other


def first_steps(found: Resumption) -> Iterator[tuple[int, Step, Step]]:
    for rank, mine, other in pairs_of(found):
        if mine.step == 0:
            yield rank, mine, other


def apart(one: Sequence[Any], two: Sequence[Any], limit: float) -> list[int]:
    """Places at which two rows of sketches differ."""
    return [place for place, (a, b) in enumerate(zip(one, two, strict=False)) if distance(a, b) > limit]


def batches_at(evidence: RankEvidence, step: int) -> list[tuple[Any, Any]]:
    return [
        (one.get("mark"), tuple(one["ids"]) if one.get("ids") else None)
        for one in evidence.all("batch")
        if one["step"] == step
    ]


def loss_words(mine: Step, other: Step) -> str:
    losses = [
        next((one["loss"] for one in step.all("backward") if one.get("loss") is not None), None)
        for step in (mine, other)
    ]
    if None in losses or losses[0] == losses[1]:
        return ""
    return f": its loss is {losses[0]:.4g} instead of {losses[1]:.4g}"
