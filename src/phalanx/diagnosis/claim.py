"""A claim: a rule, or the lack of one, applied to the evidence, before it is weighed against other claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from phalanx.blame import NOBODY, Accusation
from phalanx.knowledge import Rule
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Confidence, Event, Role, Stage

WORDLESS = "died-without-words"  # the cause of a claim that rests on exit statuses alone
_MOST_VALUES = 4  # of one capture that a text lists
SPECIFIC = 30  # rules below this priority are general catches


@dataclass(frozen=True, slots=True)
class Proof:
    """An event in the role it plays for a claim."""

    event: Event
    role: Role
    captures: Mapping[str, str] = field(default_factory=dict)
    after_progress: bool = False
    line: str = ""  # the line that matched, where the event is the exception around it


def is_about_peers(symptom: str) -> bool:
    """Symptoms of ranks that failed to meet."""
    return symptom.endswith(("communication-error", "hang-timeout", ".hang"))


@dataclass(frozen=True, slots=True)
class Claim:
    """What one rule says of the job. `rule` is None where no rule knew the exception, death or silence."""

    rule: Rule | None
    symptom: str
    cause: str
    title: str
    summary: str
    depth: Claims
    blame: Blame
    fatal: bool
    priority: int
    confidence: Confidence
    proofs: tuple[Proof, ...]
    stage: Stage | None = None
    accusation: Accusation = NOBODY
    victims: frozenset[int] = frozenset()
    ended_its_rank: bool = False  # by an exception, where the rule's fault need not end a job
    patterns: tuple[str, ...] = ()  # fixes that come first where no rule gives any
    is_explained: bool = False  # by what the accused did instead

    @property
    def culprits(self) -> frozenset[int]:
        """The ranks to blame."""
        return self.accusation.ranks

    @property
    def roots(self) -> list[Proof]:
        """The evidence that made the claim."""
        return [proof for proof in self.proofs if proof.role is Role.ROOT]

    @property
    def printers(self) -> frozenset[int]:
        """The ranks that show the root evidence."""
        return frozenset(proof.event.rank for proof in self.roots if proof.event.rank is not None)

    @property
    def is_about_others(self) -> bool:
        """The evidence comes from ranks that wait for or lost another one, not from the accused."""
        return self.depth is Claims.VICTIM or self.blame in (Blame.SILENT, Blame.NAMED)

    @property
    def is_communication(self) -> bool:
        """Ranks failed to meet: somebody else may have caused what they say."""
        return is_about_peers(self.symptom)

    @property
    def is_meeting(self) -> bool:
        """Ranks failed to meet, or to set their group up."""
        return self.is_communication or self.symptom.startswith("comm.")

    @property
    def is_open(self) -> bool:
        """The rule does not say itself what is wrong with whom."""
        return self.depth is not Claims.CAUSE or self.blame is Blame.NOBODY

    def explained_by(self, rule: Rule, proof: Proof) -> Claim:
        """The same evidence and the same accused, told by a rule that knows why."""
        return replace(
            self,
            rule=rule,
            cause=proof.captures.get("cause", rule.cause),
            title=rule.title,
            summary=rule.summary,
            proofs=(*self.proofs, proof),
            is_explained=True,
        )

    @property
    def captures(self) -> dict[str, str]:
        """Everything captured, the root's own first; of a capture `peer` all different values as `peers`."""
        merged: dict[str, str] = {}
        found: dict[str, dict[str, None]] = {}
        for proof in sorted(self.proofs, key=lambda proof: proof.role is not Role.ROOT):
            for name, value in proof.captures.items():
                merged.setdefault(name, value)
                found.setdefault(f"{name}s", {}).setdefault(value)
        return {name: ", ".join([*values][:_MOST_VALUES]) for name, values in found.items()} | merged
