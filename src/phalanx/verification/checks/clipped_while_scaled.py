"""Gradients are clipped while they still carry the loss scaler's factor."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.verification.evidence import Evidence, Step
from phalanx.verification.found import Found

_FEWEST = 2


def check(evidence: Evidence) -> Iterator[Found]:
    """By the order of events: a clip, the scaler's step, and nothing unscaled before the clip."""
    for one in evidence.ranks.values():
        looked = [step for step in one.steps if step.is_looked_at and step.all("clip") and step.all("scaler")]
        places = [_place(step) for step in looked]
        if len(places) >= _FEWEST and all(place is not None for place in places):
            line, scale = places[0] or ("", 1.0)
            yield Found(
                cause="clipped-while-scaled",
                headline=f"Gradients are clipped at {line} while they are still multiplied by the loss scale ({scale:g}): the limit acts {scale:g} × too early.",
                line=line,
                pattern="fix-behavior-logic",
                do="Call `scaler.unscale_(optimizer)` before `clip_grad_norm_`.",
                why="The scaler's step divides the clipped gradients by the scale: nearly every step is far too small.",
                title="Clipped while scaled",
            )
            return


def _place(step: Step) -> tuple[str, float] | None:
    kinds = [kind for kind, _ in step.events]
    clip, scaler = kinds.index("clip"), kinds.index("scaler")
    scale = step.events[scaler][1].get("scale")
    if "unscaled" in kinds[:clip] or clip > scaler or not isinstance(scale, (int, float)) or scale <= 1:
        return None
    return str(step.events[clip][1]["line"]), float(scale)
