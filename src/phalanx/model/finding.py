"""What is concluded: a symptom with its cause, who did it, who suffered, how to mend it, and the proof."""

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


@dataclass(frozen=True, slots=True)
class Place:
    """A file and line, usually in the user's own code."""

    file: str
    line: int


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


@dataclass(frozen=True, slots=True)
class Fix:
    """One change that mends the fault; `study_share` is how often the pattern cured this symptom in the study."""

    pattern: str
    title: str
    do: str
    why: str
    confirm: str
    safety: Safety
    where: Place | None = None
    study_share: float | None = None
    shell: str = ""  # the same as a shell command, where one does it


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
    accused_by: str = ""  # the strategy that found the culprits (docs/design.md)
    because: str = ""  # on what, in a few words for people
