"""What is concluded: a symptom with its cause, who did it, who suffered from it, how to fix it, and the proof."""

from dataclasses import dataclass
from enum import StrEnum

from phalanx.model.stage import Stage


class Confidence(StrEnum):
    """How sure a finding is; ordered by `weight`."""

    CONFIRMED = "confirmed"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @property
    def weight(self) -> int:
        """3 for confirmed, 1 for possible."""
        return {"confirmed": 3, "likely": 2, "possible": 1}[self.value]


class Role(StrEnum):
    """What a piece of evidence does for the claim it stands under."""

    ROOT = "root"
    SUPPORTS = "supports"
    EXCLUDES = "excludes"
    CASCADE = "cascade"
    REQUIRES = "requires"


class Safety(StrEnum):
    """Whether a fix may be applied without asking."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


class Basis(StrEnum):
    """Why a fix is offered. Only the first two kinds are shown unless somebody asks for all."""

    EVIDENCE = "evidence"  # something in this job points to it
    RULE = "rule"  # the rule that fired advises it
    STUDY = "study"  # it cured other faults with this symptom


@dataclass(frozen=True, slots=True)
class Place:
    """A file and line, usually in the user's own code, with the line's text where it is known."""

    file: str
    line: int
    function: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quoted observation that a finding rests on, with the lines around it where they are known."""

    rank: int | None
    file: str
    line: int
    text: str
    role: Role
    host: str | None = None
    context: tuple[tuple[int, str], ...] = ()
    alike: tuple[int, ...] = ()  # other ranks that print the same, folded into this one


@dataclass(frozen=True, slots=True)
class Fix:
    """One change that fixes the fault; `study_share` is how often the pattern cured this symptom in the study."""

    pattern: str
    title: str
    do: str
    why: str
    confirm: str
    safety: Safety
    where: Place | None = None
    study_share: float | None = None
    shell: str = ""  # the same as a shell command, where one does it
    basis: Basis = Basis.RULE


@dataclass(frozen=True, slots=True)
class Finding:
    """A conclusion and the evidence for it."""

    symptom: str
    stage: Stage
    cause: str
    rule: str | None
    confidence: Confidence
    distributed_specific: bool
    distributed_why: str
    culprit_ranks: tuple[int, ...]
    victim_ranks: tuple[int, ...]
    affected_ranks: tuple[int, ...]
    title: str
    summary: str
    fixes: tuple[Fix, ...]
    evidence: tuple[Evidence, ...]
    culprit_hosts: tuple[str, ...] = ()  # where hosts are examined, with or without ranks on them
    victim_hosts: tuple[str, ...] = ()
    severity: str = "error"  # or warning: the job may work, but slowly or by luck
    accused_by: str = ""  # the strategy that found the culprits (docs/design.md)
    because: str = ""  # on what, in a few words for people
    headline: str = ""  # who did what where, in one sentence; `title` names only the class of fault
    detail: str | None = None  # what the summary adds to the headline; None where that is not told apart
    culprit_confidence: Confidence | None = None  # how sure it is who; None where nobody is accused
    cause_confidence: Confidence | None = None  # how sure it is why
    place: Place | None = None  # the user's line that it happened at

    @property
    def first_line(self) -> str:
        """The sentence to read first."""
        return self.headline or self.summary or self.title

    @property
    def shown_fixes(self) -> tuple[Fix, ...]:
        """The fixes that this job or its rule points to."""
        return tuple(fix for fix in self.fixes if fix.basis is not Basis.STUDY)
