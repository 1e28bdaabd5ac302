"""Labels new issues by the trained text model: type, symptom, stage, fix pattern, specific to distributed training or not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.study.classify.model import Model
from phalanx.study.labels import STAGES


@dataclass(frozen=True, slots=True)
class Labels:
    """What the model takes an issue for, with the probability that it is right."""

    type: str | None
    symptom: str | None
    stage: str | None
    fix: str | None
    distributed: bool | None
    probability: float | None  # that the symptom is right (of a question: that it is one)
    fix_probability: float | None


def classify(text: str, model: Model) -> Labels:
    """Label one text."""
    guesses = model.guess(text)
    kind, symptom, fix, specific = (guesses.get(target) for target in ("type", "symptom", "fix", "distributed"))
    if kind is not None and kind.label != "fault":
        return Labels(kind.label, None, None, None, None, kind.probability, None)
    return Labels(
        type=kind.label if kind else None,
        symptom=symptom.label if symptom else None,
        stage=STAGES[symptom.label.partition(".")[0]] if symptom else None,
        fix=fix.label if fix else None,
        distributed=specific.label == "yes" if specific else None,
        probability=symptom.probability if symptom else kind.probability if kind else None,
        fix_probability=fix.probability if fix else None,
    )


def classify_all(texts: Iterable[str], model: Model) -> Iterator[Labels]:
    """Label many, one after another."""
    return (classify(text, model) for text in texts)


def score(rows: Sequence[Mapping[str, Any]], found: Sequence[Labels]) -> dict[str, tuple[int, int]]:
    """By target, how many labels that the table already has the model gives too, and how many there are."""
    scores = {}
    for target in ("type", "symptom", "fix"):
        pairs = [(row.get(target), getattr(one, target)) for row, one in zip(rows, found, strict=True)]
        given = [(wanted, got) for wanted, got in pairs if wanted]
        if given:
            scores[target] = (sum(wanted == got for wanted, got in given), len(given))
    return scores
