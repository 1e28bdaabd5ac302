"""Orders the fixes: what the evidence points to, then what the rule advises, then what cured this symptom in the study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from phalanx.diagnosis.claim import Claim
from phalanx.diagnosis.quoting import place_of
from phalanx.knowledge import FIX_PATTERNS
from phalanx.knowledge.figures import fault_count, fix_share, frequent_fixes
from phalanx.knowledge.rule import Claims, FixSpec
from phalanx.model import Basis, Fix, Place, Safety
from phalanx.model.template import fill

_MOST = 3  # of those that only the study knows


def fixes_of(claim: Claim, symptom: str, framework: str | None, values: Mapping[str, str]) -> tuple[Fix, ...]:
    """What something in this job points to, then the rest of the rule's, then the study's, which are not shown by themselves."""
    place = place_of(claim)
    specs = claim.rule.fixes if claim.rule is not None else ()
    shown = _shown_by(claim)
    pointed = [spec for spec in specs if (spec.when is not None and spec.when.search(shown)) or _is_given(spec, values)]
    fixes = [_from_rule(spec, symptom, place, values, Basis.EVIDENCE) for spec in pointed]
    fixes += [
        _from_rule(spec, symptom, place, values, Basis.RULE) for spec in specs if spec not in pointed and not spec.only
    ]
    if claim.rule is None and claim.depth is Claims.CAUSE:
        fixes += [_by_pattern(pattern, symptom, place, Basis.EVIDENCE) for pattern in claim.patterns[:1]]
    elif claim.rule is None and place is not None:
        fixes += [_of_own_code(pattern, symptom, place) for pattern in claim.patterns]
    known = {fix.pattern for fix in fixes}
    others = [pattern for pattern in frequent_fixes(symptom, framework) if pattern not in known]
    return (*fixes, *(_by_pattern(pattern, symptom, place, Basis.STUDY) for pattern in dict.fromkeys(others[:_MOST])))


def _is_given(spec: FixSpec, values: Mapping[str, str]) -> bool:
    """Whether a fact has the field that the fix asks for; `field=a|b` asks for one of these values."""
    name, _, wanted = spec.given.partition("=")
    value = values.get(name, "")
    return value in wanted.split("|") if wanted else bool(value)


def _of_own_code(pattern: str, symptom: str, place: Place) -> Fix:
    """Where the user's own statement raised it, only their code or data can be wrong, and that is all there is to say."""
    is_data = pattern == "fix-dataset"
    return Fix(
        pattern=pattern,
        title="Only your code can be wrong here" + (", or the data it was given" if is_data else ""),
        do=f"Correct {PurePosixPath(place.file).name}:{place.line}; nothing else raised it.",
        why="",
        confirm="",
        safety=Safety.DISPLAY,
        where=place,
        study_share=round(fix_share(symptom, pattern), 3),
        basis=Basis.EVIDENCE,
    )


def _shown_by(claim: Claim) -> str:
    """All that the evidence holds: its lines, and the files and source lines of its stacks."""
    texts = [text for proof in claim.proofs for text in (proof.line, proof.event.text)]
    texts += [f"{frame.path} {frame.source}" for proof in claim.roots for frame in proof.event.frames]
    own = (proof.event.user_frame for proof in claim.proofs if proof not in claim.roots)  # where the victims were
    texts += [frame.source for frame in own if frame is not None]
    return " ".join(texts)


def _from_rule(spec: FixSpec, symptom: str, place: Place | None, values: Mapping[str, str], basis: Basis) -> Fix:
    return Fix(
        pattern=spec.pattern,
        title=fill(spec.title, values),
        do=fill(spec.do, values),
        why=fill(spec.why, values),
        confirm=fill(spec.confirm, values),
        safety=spec.safety,
        where=place,
        study_share=round(fix_share(symptom, spec.pattern), 3),
        shell=spec.shell,
        basis=basis,
    )


def _by_pattern(pattern: str, symptom: str, place: Place | None, basis: Basis) -> Fix:
    known = FIX_PATTERNS[pattern]
    share = fix_share(symptom, pattern)
    return Fix(
        pattern=pattern,
        title=known.title,
        do=known.do,
        why=f"It cured {share:.0%} of the {fault_count(symptom)} faults with this symptom in the study."
        if share > 0
        else "",
        confirm="",
        safety=Safety.DISPLAY,
        where=place,
        study_share=round(share, 3),
        basis=basis,
    )
