"""FSDP2 that was told not to reduce gradients in the backward pass before a step."""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.verification.evidence import Evidence, RankEvidence, Step
from phalanx.verification.found import Found

_FEWEST = 2  # steps
_SETS = re.compile(r"\bset_requires_gradient_sync\(")


def check(evidence: Evidence) -> Iterator[Found]:
    """At every step that was looked at, on all ranks: what the pass brought then stays out of this step and comes into a later one."""
    for optimizer in evidence.optimizers:
        each = [_steps(one, optimizer) for one in evidence.ranks.values()]
        if len(each) < 2 or not all(len(steps) >= _FEWEST and all(map(_is_held_back, steps)) for steps in each):
            continue
        step = each[0][0]
        passes = step.all("backward")
        name = str(passes[-1]["line"]).rpartition(":")[0]
        sets = [number for number, text in enumerate(evidence.lines(name), 1) if _SETS.search(text)]
        line = f"{name}:{sets[0]}" if len(sets) == 1 else str(passes[-1]["line"])
        told = f" (`set_requires_gradient_sync` at {line})" if len(sets) == 1 else ""
        which = f"the last of {len(passes)} passes" if len(passes) > 1 else "the pass"
        yield Found(
            cause="no-sync-around-last-backward",
            headline=f"FSDP2 does not reduce gradients in {which} before the optimizer steps at {step.line}{told}: what {passes[-1]['line']} brings is left out of step {step.number + 1}.",
            line=line,
            pattern="fix-distributed-api-usage",
            do="Call `model.set_requires_gradient_sync(True)` before the last backward pass of each optimizer step, and False only before the others.",
            why="Gradients of a pass without the reduction wait, unsharded, for the next pass that reduces, which belongs to a later step.",
            title="The last backward pass does not synchronise",
            explains=("accumulation-not-divided", "gradients-not-cleared"),
        )  # fmt: skip
        return


def _steps(one: RankEvidence, optimizer: int) -> list[Step]:
    held = one.optimizers.get(optimizer)
    if held is None or not any(isinstance(parameter.shard, tuple) for parameter in held.parameters):
        return []
    return [step for step in one.steps_of(optimizer).values() if step.is_looked_at and step.all("backward")]


def _is_held_back(step: Step) -> bool:
    return bool(step.all("backward")[-1].get("held_back"))
