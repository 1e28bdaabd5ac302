"""Training that goes on in evaluation mode: after an evaluation nobody called `model.train()` again."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, RankEvidence
from phalanx.verification.found import Found

_FEWEST = 2


def check(evidence: Evidence) -> Iterator[Found]:
    """It was in training mode first, and from some step on never again, with layers for which that matters."""
    found = {rank: at for rank, one in evidence.ranks.items() if (at := _left(one)) is not None}
    if not found:
        return
    rank = min(found)
    step, line, layers = found[rank]
    few = len(found) * 2 < len(evidence.ranks)
    yield Found(
        cause="trained-in-evaluation-mode",
        headline=f"From step {step + 1} on {name_ranks(found)} train{'s' if len(found) == 1 else ''} in evaluation mode ({line}): "
        f"{', '.join(layers)} no longer work{'s' if len(layers) == 1 else ''} as in training.",
        line=line,
        pattern="fix-behavior-logic",
        do="Call `model.train()` after every evaluation, on every rank that called `model.eval()`.",
        why="Dropout is off and BatchNorm keeps its statistics for the rest of the run.",
        title="Training in evaluation mode",
        culprits=tuple(sorted(found)) if few else (),
    )


def _left(one: RankEvidence) -> tuple[int, str, list[str]] | None:
    """The first step in evaluation mode, its line, and the layers it matters for."""
    for model in one.all("model"):
        modes = [
            (step.step, bool(at["training"]), str(at["line"]))
            for step in one.steps
            for at in step.all("forward")
            if at["m"] == model["m"]
        ]
        first = next((place for place, (_, training, _) in enumerate(modes) if not training), 0)
        rest = modes[first:]
        if first >= _FEWEST and len({step for step, _, _ in rest}) >= _FEWEST and not any(mode for _, mode, _ in rest):
            layers = list(model.get("layers") or ())
            if layers:
                return rest[0][0], rest[0][2], layers
    return None
