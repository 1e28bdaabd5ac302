"""Orders the fixes: what the evidence points to, then what the rule advises, then what cured this symptom in the study."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.diagnose.claim import Claim
from phalanx.knowledge import FIX_PATTERNS
from phalanx.knowledge.figures import fault_count, fix_share, frequent_fixes
from phalanx.knowledge.rule import FixSpec
from phalanx.model import Fix, Place, Safety
from phalanx.model.template import fill

_FEWEST = 3


def fixes_of(claim: Claim, symptom: str, framework: str | None, values: Mapping[str, str]) -> tuple[Fix, ...]:
    """At least three fixes where the study knows that many, best first, no pattern twice unless the rule says so."""
    place = _place(claim)
    specs = claim.rule.fixes if claim.rule is not None else ()
    evidence = " ".join(text for proof in claim.proofs for text in (proof.line, proof.event.text))
    pointed = [spec for spec in specs if spec.when is not None and spec.when.search(evidence)]
    pointed += [spec for pattern in claim.pointed for spec in specs if spec.pattern == pattern and spec not in pointed]
    ordered = pointed + [spec for spec in specs if spec not in pointed]
    fixes = [_from_rule(spec, symptom, place, values) for spec in ordered]
    for pattern in (*claim.patterns, *frequent_fixes(symptom, framework)):
        if len(fixes) >= max(_FEWEST, len(specs)):
            break
        if all(fix.pattern != pattern for fix in fixes):
            fixes.append(_from_study(pattern, symptom, place))
    return tuple(fixes)


def _place(claim: Claim) -> Place | None:
    """The user's line to look at: the accused rank's own where it is known."""
    accused_first = sorted(claim.roots, key=lambda proof: proof.event.rank not in claim.culprits)
    for proof in accused_first:
        if (frame := proof.event.user_frame) is not None:
            return Place(frame.file, frame.line)
    return None


def _from_rule(spec: FixSpec, symptom: str, place: Place | None, values: Mapping[str, str]) -> Fix:
    return Fix(
        pattern=spec.pattern,
        title=fill(spec.title, values),
        do=fill(spec.do, values),
        why=fill(spec.why, values),
        confirm=fill(spec.confirm, values),
        safety=spec.safety,
        where=place,
        study_share=round(fix_share(symptom, spec.pattern), 3),
    )


def _from_study(pattern: str, symptom: str, place: Place | None) -> Fix:
    known = FIX_PATTERNS[pattern]
    share = fix_share(symptom, pattern)
    return Fix(
        pattern=pattern,
        title=known.title,
        do=known.do,
        why=f"It cured {share:.0%} of the {fault_count(symptom)} faults with this symptom in the study."
        if share > 0
        else "Where the exception was raised speaks for it.",
        confirm="",
        safety=Safety.DISPLAY,
        where=place,
        study_share=round(share, 3),
    )
