"""Dropout, or the script itself, draws the same noise on every rank, because all ranks are seeded alike."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from phalanx.model import Confidence
from phalanx.model.ranks import all_of
from phalanx.verification.evidence import Evidence, RankEvidence
from phalanx.verification.found import Found

_FEWEST = 3
_BY_DESIGN = ("lightning", "pytorch_lightning", "lightning_fabric", "transformers", "accelerate", "deepspeed")


def check(evidence: Evidence) -> Iterator[Found]:
    """Random states are equal whenever the model is called for training, on data that differ."""
    if len(evidence.ranks) < 2 or not all(_seeds(one) for one in evidence.ranks.values()):
        return
    if any(one.all("model") and _is_sharded(one) for one in evidence.ranks.values()):
        return  # ranks that compute parts of one layer must draw the same
    yield from _dropout(evidence)
    yield from _own_noise(evidence)


def _dropout(evidence: Evidence) -> Iterator[Found]:
    states = {rank: _states(one) for rank, one in evidence.ranks.items()}
    fewest = min(map(len, states.values()))
    first = next(iter(states.values()))
    if fewest < _FEWEST or any(found[:fewest] != first[:fewest] for found in states.values()):
        return
    marks = {rank: _marks(one)[:fewest] for rank, one in evidence.ranks.items()}
    if len({tuple(found) for found in marks.values()}) == 1:
        return  # the same data too: that is the fault to tell
    seed = _seeds(next(iter(evidence.ranks.values())))[-1]
    yield Found(
        cause="same-noise-on-all-ranks",
        headline=f"Dropout draws the same mask on {all_of(len(evidence.ranks), 'ranks')} at every step: all are seeded with {seed['value']} ({seed['line']}).",
        line=str(seed["line"]),
        pattern="fix-behavior-logic",
        do="Seed alike to make the model, then by rank for training: `torch.manual_seed(seed + rank)` after the model is wrapped.",
        why="Noise that is the same on all ranks does not average out over the global batch.",
        title="The same noise on all ranks",
        confidence=Confidence.LIKELY,
    )  # fmt: skip


def _own_noise(evidence: Evidence) -> Iterator[Found]:
    """A line that draws from the same state on all ranks in every training step, beside inputs that differ."""
    drawn = {rank: _drawn(one) for rank, one in evidence.ranks.items()}
    first = next(iter(drawn.values()))
    for line in sorted({line for at in first.values() for line in at}):
        steps = [step for step, at in first.items() if line in at]
        if len(steps) < _FEWEST or any(
            found.get(step, {}).get(line) != first[step][line] for found in drawn.values() for step in steps
        ):
            continue
        inputs = {rank: [_inputs(one, step) for step in steps] for rank, one in evidence.ranks.items()}
        if any(a == b for at in zip(*inputs.values(), strict=True) for a, b in pairwise(at)):
            continue  # the same data too: that is the fault to tell
        seed = _seeds(next(iter(evidence.ranks.values())))[-1]
        yield Found(
            cause="same-noise-on-all-ranks",
            headline=f"The noise drawn at {line} is the same on {all_of(len(evidence.ranks), 'ranks')} at every step: all are seeded with {seed['value']} ({seed['line']}).",
            line=line,
            pattern="fix-behavior-logic",
            do="Seed alike to make the model, then by rank for training: `torch.manual_seed(seed + rank)` after the model is wrapped; or draw from a generator seeded by rank.",
            why="Noise that is the same on all ranks does not average out over the global batch.",
            title="The same noise on all ranks",
            confidence=Confidence.LIKELY,
        )  # fmt: skip
        return


def _drawn(one: RankEvidence) -> dict[int, dict[str, tuple[int, ...]]]:
    """By step and line: the states that were drawn from. Before the first step the model is made."""
    found: dict[int, dict[str, tuple[int, ...]]] = {}
    for step in one.steps:
        for at in step.all("noise") if step.step > 0 else ():
            mine = found.setdefault(step.step, {})
            mine[str(at["line"])] = (*mine.get(str(at["line"]), ()), int(at["rng"]))
    return found


def _is_sharded(one: RankEvidence) -> bool:
    return any(not parameter.is_whole for held in one.optimizers.values() for parameter in held.parameters)


def _seeds(one: RankEvidence) -> list[dict[str, object]]:
    """Seeds that the user's own code sets; frameworks that seed all ranks alike do so by design."""
    found = [dict(seed) for seed in one.all("seed") if seed["what"] == "torch"]
    return found if found and not any(str(seed.get("by")) in _BY_DESIGN for seed in found) else []


def _states(one: RankEvidence) -> list[object]:
    return [at["rng"] for kind, at in one.events if kind == "forward" and at.get("dropout") and at["training"]]


def _marks(one: RankEvidence) -> list[object]:
    return [at["mark"] for kind, at in one.events if kind == "forward" and at.get("dropout") and at["training"]]


def _inputs(one: RankEvidence, number: int) -> tuple[object, ...]:
    """Fingerprints of what went into models in a step."""
    return tuple(at.get("mark") for step in one.steps if step.step == number for at in step.all("forward"))
