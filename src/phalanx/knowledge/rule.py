"""A rule: one fault, what betrays it, who is to blame, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from phalanx.knowledge.expression import Expression
from phalanx.knowledge.fact_spec import FactSpec
from phalanx.model import Confidence, Role, Safety, Stage


class RuleError(ValueError):
    """A rule file that cannot be used, with the reason."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class Claims(StrEnum):
    """How deep a rule's claim goes; a deeper one wins the verdict."""

    CAUSE = "cause"  # it names why
    SYMPTOM = "symptom"  # it names what happened, not why
    VICTIM = "victim"  # words of a rank that suffered from another's fault

    @property
    def depth(self) -> int:
        """2 for a cause, 0 for a victim's words."""
        return {"cause": 2, "symptom": 1, "victim": 0}[self.value]


class Blame(StrEnum):
    """Whom the evidence accuses."""

    PRINTER = "printer"  # the ranks that print it (nobody, if all do)
    SILENT = "silent"  # the ranks that do not print it while the others do
    NAMED = "named"  # the ranks that the capture `culprit` names
    ODD = "odd"  # whoever is fewer: those that print it, or those that do not
    NOBODY = "nobody"  # the job's configuration: no rank stands out, unless other evidence singles one out
    NETWORK = "network"  # what lies between the hosts: no rank, whatever else points at one


class Ranks(StrEnum):
    """How many ranks must show a piece of evidence."""

    ANY = "any"
    ONE = "one"
    SOME = "some"  # at least one, but not all
    ALL = "all"


@dataclass(frozen=True, slots=True)
class EvidenceSpec:
    """One observation a rule asks for: a log line, a fact or an exit code."""

    role: Role
    ranks: Ranks = Ranks.ANY
    line: Expression | None = None
    exit_codes: frozenset[int] = frozenset()
    literals: frozenset[str] = frozenset()
    is_common: bool = False  # the literals stand in healthy logs too
    fact: FactSpec | None = None
    outside: Expression | None = (
        None  # frames (`path function`) in which the line's exception must not have been raised
    )


@dataclass(frozen=True, slots=True)
class FixSpec:
    """A remedy as written in a rule; `{name}` stands for what the evidence captured."""

    pattern: str
    title: str
    do: str
    why: str
    confirm: str = ""
    safety: Safety = Safety.DISPLAY
    when: Expression | None = None
    only: bool = False  # offered only if `when` or `given` holds
    given: str = ""  # a field of the evidence: if it is known, the evidence points to this fix
    shell: str = ""  # the same as a shell command; printed by `phalanx check --fix-script` if it is safe


@dataclass(frozen=True, slots=True)
class Case:
    """An example in a rule's file: inputs by file name, and what must be concluded from them."""

    name: str
    fires: bool
    files: tuple[tuple[str, str], ...]
    message: str | None = None
    expects: tuple[tuple[str, str], ...] = ()
    headline: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A loaded rule file."""

    code: str
    symptom: str
    cause: str
    status: str
    path: Path
    title: str
    summary: str
    sections: dict[str, str]
    evidence: tuple[EvidenceSpec, ...]
    fixes: tuple[FixSpec, ...]
    frameworks: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    claims: Claims = Claims.CAUSE
    blame: Blame = Blame.PRINTER
    fatal: bool = True
    distributed: bool | None = None
    priority: int = 50
    confidence: Confidence = Confidence.LIKELY
    overlaps: frozenset[str] = frozenset()
    by_stage: dict[Stage, str] = field(default_factory=dict)
    headlines: tuple[str, ...] = ()  # who did what where; the first one whose fields the evidence fills is used
    cases: tuple[Case, ...] = ()

    @property
    def is_active(self) -> bool:
        """Deprecated rules still fire; removed ones only keep their code from being used again."""
        return self.status != "removed"

    def symptom_at(self, stage: Stage | None) -> str:
        """The symptom this fault shows at a stage; the rule's own where the stage makes no difference."""
        return self.by_stage.get(stage, self.symptom) if stage is not None else self.symptom
