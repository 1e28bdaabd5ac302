"""Evaluations of the ranks: passes over loaders that no optimizer steps on, and what ranks tell each other afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from phalanx.verification.evidence import Evidence, RankEvidence, Record
from phalanx.verification.samples import Pass, side_by_side

_NO_VALUES = ("barrier",)
_COMBINING = ("allreduce", "allreduce_coalesced", "reduce")


def evaluations(evidence: Evidence, ranks: Sequence[int]) -> Iterator[dict[int, Pass]]:
    """Passes without training, in which the model is asked without gradients, on all of these ranks."""
    for passes in side_by_side(evidence, ranks, training=False):
        if all(one.evals for one in passes.values()):
            yield passes


def events_after(one: RankEvidence, done: Pass) -> list[tuple[str, Record]]:
    """What happens from an evaluation to the next training pass. What was before it, in the same gap, counts too: it is not known which came first."""
    following = next((record for record in one.records[done.after :] if record["k"] in ("step", "end")), None)
    found = []
    for kind, fields in (following or {}).get("events", ()):
        if kind in ("forward", "backward"):
            break
        found.append((str(kind), fields))
    return found


def calls_after(one: RankEvidence, done: Pass) -> list[Record]:
    """The collectives from an evaluation to the next training pass."""
    return [
        fields
        for kind, fields in events_after(one, done)
        if kind == "call" and fields["op"] not in _NO_VALUES and not fields.get("what")
    ]


def combines(calls: Mapping[int, Sequence[Record]]) -> bool:
    """Whether the script sums over the ranks: what was counted twice then stays counted twice. DDP's own calls, in C++, say no kind of reduction."""
    return all(
        any(call["op"] in _COMBINING and (call.get("red") or call.get("group") == "horovod") for call in one)
        for one in calls.values()
    )
