"""Loss scalers that disagree: one rank skips a step that the others take, or scales by another number."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.blame.quorum import odd_ones
from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.reduction import reductions
from phalanx.verification.replicas import replicas_of


def check(evidence: Evidence) -> Iterator[Found]:
    """By the number of the try, which counts skipped steps too."""
    for optimizer in evidence.optimizers:
        holders = evidence.holders(optimizer)
        by_rank = {rank: evidence.ranks[rank].steps_of(optimizer) for rank in holders}
        if len(by_rank) < 2 or not _is_one_model(evidence, optimizer):
            continue
        for number in sorted(set.intersection(*(set(steps) for steps in by_rank.values()))):
            steps = {rank: found[number] for rank, found in by_rank.items()}
            scales = {rank: tuple(one["scale"] for one in step.all("scaler")) for rank, step in steps.items()}
            if not all(scales.values()):
                continue
            skipped = {rank: step.skipped for rank, step in steps.items()}
            if len(set(skipped.values())) > 1:
                who = [rank for rank, value in skipped.items() if value]
                yield _found(
                    f"{name_ranks(who)} skipped step {number + 1}, which the others took: its gradients were not finite there only",
                    number, tuple(sorted(odd_ones(skipped, skipped))), steps[who[0]].line,
                )  # fmt: skip
                break
            if len(set(scales.values())) > 1:
                shown = ", ".join(f"{value[0]:g} on rank {rank}" for rank, value in sorted(scales.items())[:4])
                yield _found(f"The loss scale of step {number + 1} is not the same on all ranks: {shown}", number, tuple(sorted(odd_ones(scales, scales))),
                             steps[min(steps)].line)  # fmt: skip
                break


def _is_one_model(evidence: Evidence, optimizer: int) -> bool:
    """Wrapped, or gradients were reduced at some step: scalers of models that are apart may do as they like."""
    replicas = replicas_of(evidence, optimizer)
    if any(one.wrapper is not None for one in replicas):
        return True
    steps = (at for _, at in evidence.common_steps(optimizer))
    return any(one.is_telling and one.is_reduced for at in steps for one in reductions(replicas, at))


def _found(headline: str, number: int, culprits: tuple[int, ...], line: str) -> Found:
    return Found(
        cause="skipped-steps-differ",
        headline=f"{headline[0].upper()}{headline[1:]}.",
        line=line,
        pattern="fix-consistency-between-devices",
        do="Let all ranks skip together: reduce gradients before `scaler.step()` (DDP does), or reduce `found_inf` with MAX over all ranks.",
        why="A step that only some ranks take leaves the others with other weights.",
        title="Loss scalers disagree",
        culprits=culprits,
        explains=("weights-diverge", "weights-changed-on-some-ranks"),
    )
