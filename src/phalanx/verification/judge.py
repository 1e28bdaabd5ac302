"""Runs all checks over the evidence and makes the report."""

from __future__ import annotations

from phalanx.model import Rank, Report, Unchecked, World
from phalanx.verification.checks import checks
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found, finding_of, without_consequences


def judge(evidence: Evidence) -> Report:
    """The report: findings by confidence, in the order of the checks; what could not be looked at is listed."""
    found: list[Found] = []
    unchecked = list(_unseen(evidence))
    for name, check in sorted(checks().items()):
        try:
            found += check(evidence)
        except Exception as error:  # one check that fails must not hide what the others see
            unchecked.append(
                Unchecked(f"{name} ({type(error).__name__}: {error})", "a report of this error to Phalanx")
            )
    kept = sorted(without_consequences(found), key=lambda one: -one.confidence.weight)
    return Report(
        World(
            size=evidence.size,
            framework=evidence.framework,
            launcher="phalanx",
            ranks=tuple(Rank(number, last_step=_last_step(evidence, number)) for number in sorted(evidence.ranks)),
        ),
        findings=tuple(finding_of(one, evidence) for one in kept),
        not_checked=tuple(unchecked),
        scope=_scope(evidence),
    )


def _unseen_in_graphs(evidence: Evidence) -> list[Unchecked]:
    """Of TensorFlow: what happens within a compiled function is not seen, only what it leaves behind."""
    found = [
        Unchecked(
            "each rank's own gradients, clipping and schedules in TensorFlow",
            "PyTorch: what a compiled function computes inside is not seen, only variables between its calls",
        )
    ]
    if not any(one.all("taken") or any(at["rows"] for at in one.all("called")) for one in evidence.ranks.values()):
        needs = "batches that the script's own loop takes from a dataset or gives to a function (`Model.fit` takes them inside)"
        found.append(Unchecked("which samples each rank takes", needs))
    return found


def _scope(evidence: Evidence) -> str:
    """`24 steps on 2 ranks (20 of them fingerprinted)`."""
    one = max(evidence.ranks.values(), key=lambda rank: len(rank.steps), default=None)
    steps = one.steps[-1].step + 1 if one is not None and one.steps else 0
    looked = len({step.step for step in one.steps if step.is_looked_at}) if one is not None else 0
    calls = max((len(each.all("called")) for each in evidence.ranks.values()), default=0)
    if calls and not steps:
        return f"{calls} function calls on {evidence.size} ranks"
    part = f" ({looked} of them fingerprinted)" if looked < steps else ""
    return f"{steps} step{'s' if steps != 1 else ''} on {evidence.size} rank{'s' if evidence.size != 1 else ''}{part}"


def _last_step(evidence: Evidence, rank: int) -> float | None:
    steps = evidence.ranks[rank].steps
    return float(steps[-1].step + 1) if steps else None


def _unseen(evidence: Evidence) -> list[Unchecked]:
    """What nobody can say anything about: ranks without evidence, or without a step."""
    found = []
    missing = sorted(set(range(evidence.size)) - set(evidence.ranks))
    if missing:
        found.append(Unchecked(f"ranks {missing}", "Python processes that load PyTorch", essential=True))
    if any(one.all("weights") for one in evidence.ranks.values()):
        return [*found, *_unseen_in_graphs(evidence)]
    if evidence.ranks and not any(one.steps for one in evidence.ranks.values()):
        sees_data = any(one.all("batch") or one.all("eval") for one in evidence.ranks.values())
        needs = (
            "at least one step of a torch.optim optimizer, or of a compiled TensorFlow function, in the verified part"
        )
        found.append(Unchecked("parameters, gradients and schedules", needs, essential=not sees_data))
    for rank, one in sorted(evidence.ranks.items()):
        for record in one.all("broken"):
            what = f"rank {rank} from step {record['step']} on ({record['error']})"
            found.append(Unchecked(what, "a report of this error to Phalanx"))
    if any(p.shard == "flat" for one in evidence.ranks.values() for o in one.optimizers.values() for p in o.parameters):
        found.append(
            Unchecked("flat parameters of FSDP1 across ranks", "FSDP2 (`fully_shard`), whose shards say where they lie")
        )
    return found
