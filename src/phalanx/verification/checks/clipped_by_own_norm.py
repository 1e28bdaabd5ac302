"""Shards of one model that each rank clips by the norm of its own part."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found

_FAR = 1e-3
_FEWEST = 2  # steps


def check(evidence: Evidence) -> Iterator[Found]:
    """FSDP1's parameters are flat and local: `clip_grad_norm_` of PyTorch then sees this rank's part only."""
    for optimizer in evidence.optimizers:
        held = evidence.holders(optimizer)
        flat = [int(one["m"]) for rank in held for one in evidence.ranks[rank].all("model") if one["kind"] == "fsdp1"]
        if len(held) < 2 or not all(p.model in flat for one in held.values() for p in one.parameters):
            continue
        apart = []
        for number, steps in evidence.common_steps(optimizer):
            clips = {rank: step.all("clip")[-1] for rank, step in steps.items() if step.all("clip")}
            norms = [one["norm"] for one in clips.values() if one["norm"]]
            is_cut = any(one["most"] and one["norm"] and one["norm"] > one["most"] for one in clips.values())
            if len(norms) == len(steps) and is_cut and max(norms) > (1 + _FAR) * min(norms):
                apart.append((number, clips))
        if len(apart) >= _FEWEST:
            number, clips = apart[0]
            line = str(next(iter(clips.values()))["line"])
            shown = ", ".join(f"{one['norm']:.4g} on rank {rank}" for rank, one in list(clips.items())[:4])
            yield Found(
                cause="clipped-by-local-norm",
                headline=f"Each rank clips its shard by the norm of that shard alone ({line}): {shown} at step {number + 1}, so parts of one gradient are scaled differently.",
                line=line,
                pattern="fix-distributed-api-usage",
                do="Call FSDP's own `model.clip_grad_norm_(max_norm)`, which takes the norm over all ranks.",
                why="With FSDP a rank holds a part of each gradient; the norm of the whole is known only over all ranks.",
                title="Clipped by the norm of one shard",
            )  # fmt: skip
            return
