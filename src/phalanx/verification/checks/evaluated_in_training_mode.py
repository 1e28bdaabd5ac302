"""A model that is evaluated while its dropout and batch statistics still behave as in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phalanx.verification.evidence import Evidence, Record
from phalanx.verification.found import Found
from phalanx.verification.samples import passes_of


def check(evidence: Evidence) -> Iterator[Found]:
    """In a pass over a loader that nobody trains on: elsewhere a forward pass without gradients may be part of training."""
    for rank, one in sorted(evidence.ranks.items()):
        trained = {int(fields["m"]) for step in one.steps for fields in step.all("forward") if fields.get("training")}
        for each in passes_of(one):
            wrong = [record for record in each.evals if record["training"] and record["layers"]]
            if each.trains or not wrong or len(wrong) < len(each.evals):
                continue
            if trained and not {_trained_as(one.all("model"), int(record["m"])) for record in wrong} & trained:
                continue
            first = wrong[0]
            layers = " and ".join(str(layer) for layer in first["layers"][:3])
            yield Found(
                cause="evaluated-in-training-mode",
                headline=f"The model is evaluated in training mode at {first['line']}: {layers} {'behave' if len(first['layers']) > 1 else 'behaves'} as in training (rank {rank}, after step {first['step']}).",
                line=str(first["line"]),
                pattern="fix-behavior-logic",
                do="Call `model.eval()` before the evaluation and `model.train()` after it.",
                why="Dropout changes the outputs at random, and batch statistics learn from the evaluation's data.",
                title="The model is evaluated in training mode",
            )
            return


def _trained_as(models: Sequence[Record], number: int) -> int:
    """The wrapper of a model, where it lies in one: that is what was trained."""
    for record in models:
        if record["m"] == number and record.get("inside") is not None:
            return int(record["inside"])
    return number
