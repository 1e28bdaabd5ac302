"""What a rule's code means, as Markdown: for `phalanx rules explain` and for assistants."""

from __future__ import annotations

from phalanx.knowledge import SYMPTOMS, load_rules
from phalanx.knowledge.figures import distributed_share, fault_count
from phalanx.lint.rule import Loaded
from phalanx.lint.rule import load_rules as load_lint_rules
from phalanx.model.template import fill_without_job


def text_of_rule(code: str) -> str | None:
    """The page of a rule of logs or of scripts; None where no rule has the code."""
    code = code.upper()
    lint = next((loaded for loaded in load_lint_rules() if loaded.rule.code == code), None)
    if lint is not None:
        return _lint_text(lint)
    rule = next((rule for rule in load_rules() if rule.code == code), None)
    if rule is None:
        return None
    share = distributed_share(rule.symptom)
    parts = [
        f"# {rule.code}: {rule.title}",
        f"Symptom `{rule.symptom}` ({SYMPTOMS[rule.symptom].looks_like}); cause `{rule.cause}`. "
        f"{fault_count(rule.symptom)} faults of the study have this symptom, {share:.0%} of them specific to distributed training.",
    ]
    parts += [
        f"## {name}\n\n{fill_without_job(rule.sections[name])}"
        for name in ("Meaning", "Impact", "Confirm")
        if name in rule.sections
    ]
    parts.append("## Fix")
    parts += [
        fill_without_job(f"{number}. **{fix.title}** (`{fix.pattern}`). {fix.do} {fix.why}")
        for number, fix in enumerate(rule.fixes, 1)
    ]
    parts.append(f"## References\n\n{rule.sections['References']}")
    return "\n\n".join(parts)


def _lint_text(loaded: Loaded) -> str:
    rule = loaded.rule
    head = (
        f"Symptom `{rule.symptom}` ({SYMPTOMS[rule.symptom].looks_like}); cause `{rule.cause}`; fix `{rule.pattern}`."
    )
    related = sorted(other.code for other in load_rules() if other.cause == rule.cause)
    if related:
        head += f" In logs the same fault is {', '.join(related)}."
    rest = loaded.documentation.removeprefix(loaded.title)
    return f"# {rule.code}: {loaded.title}\n\n{head}\n\n{rest}"
