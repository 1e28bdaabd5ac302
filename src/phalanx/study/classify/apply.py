"""Labels new issues: the diagnosis where it speaks, the text model where it is silent, and both said apart."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from phalanx.model import Finding
from phalanx.study.classify.labelled import Labelled
from phalanx.study.classify.model import Model
from phalanx.study.labels import STAGES

Diagnosis = Callable[[str], Finding | None]
NOTHING, BY_RULE, BY_MODEL = "nothing", "diagnosis", "model"


@dataclass(frozen=True, slots=True)
class Labels:
    """What an issue is held to be. `by` says who said so; probabilities are None where they were never measured."""

    type: str | None
    symptom: str | None
    stage: str | None
    fix: str | None
    distributed: bool | None
    by: str
    rule: str | None
    probability: float | None  # that the symptom is right (of a question: that it is one)
    fix_probability: float | None
    certainty: str  # the diagnosis' own word


def classify(text: str, diagnose: Diagnosis, model: Model | None) -> Labels:
    """Label one text."""
    finding = diagnose(text)
    guesses = model.guess(text) if model is not None else {}
    if finding is not None and finding.rule is not None:
        fix = finding.fixes[0].pattern if finding.fixes else (guesses["fix"].label if "fix" in guesses else None)
        measured = model.notes.get("diagnosis", {}).get(finding.confidence.value) if model is not None else None
        return Labels(
            type="fault",
            symptom=finding.symptom,
            stage=finding.stage.value,
            fix=fix,
            distributed=finding.distributed_specific,
            by=BY_RULE,
            rule=finding.rule,
            probability=measured,
            fix_probability=None,
            certainty=finding.confidence.value,
        )
    if not guesses:
        return Labels(None, None, None, None, None, NOTHING, None, None, None, "")
    kind, symptom, fix_guess, specific = (guesses.get(target) for target in ("type", "symptom", "fix", "distributed"))
    if kind is not None and kind.label != "fault":
        return Labels(kind.label, None, None, None, None, BY_MODEL, None, kind.probability, None, "")
    return Labels(
        type=kind.label if kind else None,
        symptom=symptom.label if symptom else None,
        stage=STAGES[symptom.label.partition(".")[0]] if symptom else None,
        fix=fix_guess.label if fix_guess else None,
        distributed=specific.label == "yes" if specific else None,
        by=BY_MODEL,
        rule=None,
        probability=symptom.probability if symptom else kind.probability if kind else None,
        fix_probability=fix_guess.probability if fix_guess else None,
        certainty="",
    )


def classify_all(texts: Iterable[str], diagnose: Diagnosis, model: Model | None) -> Iterator[Labels]:
    """Label many, one after another."""
    return (classify(text, diagnose, model) for text in texts)


@dataclass(frozen=True, slots=True)
class EngineScore:
    """How the diagnosis did on labelled faults: how often it spoke, how often it was right when it did."""

    faults: int
    spoke: int
    right: int
    right_fix: int
    questions: int
    spoke_on_questions: int
    by_certainty: dict[str, tuple[int, int]]  # certainty -> (spoke, right)

    @property
    def calibration(self) -> dict[str, float]:
        """How often each of its words was right; rare words are drawn towards a half, for want of proof."""
        return {word: (right + 1) / (spoke + 2) for word, (spoke, right) in self.by_certainty.items()}


def score_engine(labelled: Sequence[Labelled], diagnose: Diagnosis) -> EngineScore:
    """Ask the diagnosis for every labelled text."""
    faults = spoke = right = right_fix = questions = on_questions = 0
    words: dict[str, tuple[int, int]] = {}
    for one in labelled:
        finding = diagnose(one.text)
        speaks = finding is not None and finding.rule is not None
        if one.labels.get("type") == "how-to question":
            questions += 1
            on_questions += speaks
            continue
        if not one.labels.get("symptom"):
            continue
        faults += 1
        if finding is None or finding.rule is None:
            continue
        hit = finding.symptom == one.labels["symptom"]
        spoke += 1
        right += hit
        right_fix += bool(finding.fixes) and finding.fixes[0].pattern == one.labels.get("fix")
        said, true = words.get(finding.confidence.value, (0, 0))
        words[finding.confidence.value] = (said + 1, true + hit)
    return EngineScore(faults, spoke, right, right_fix, questions, on_questions, words)
