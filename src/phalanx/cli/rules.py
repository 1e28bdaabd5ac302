"""`phalanx rules`: the knowledge, readable."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from phalanx.cli.rule_text import text_of_rule
from phalanx.diagnosis.cases import check_rule, write_messages
from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS, Rule, load_rules
from phalanx.knowledge.figures import distributed_share, fault_count, load_figures
from phalanx.knowledge.pack import load_pack, removed_codes
from phalanx.lint.rule import load_rules as load_lint_rules

rules_app = typer.Typer(no_args_is_help=True, help="The knowledge, readable: list, explain and test the rules.")
Codes = Annotated[list[str] | None, typer.Argument(help="Codes such as HNG001; all rules if none is given.")]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.add_typer(rules_app, name="rules")


def _pick(codes: list[str] | None) -> list[Rule]:
    by_code = {rule.code: rule for rule in load_rules()}
    wanted = [code.upper() for code in codes or by_code]
    for code in wanted:
        if code not in by_code:
            why = "was removed" if code in removed_codes() else "does not exist"
            typer.echo(f"phalanx: rule {code} {why}; `phalanx rules list` shows all of them", err=True)
            raise typer.Exit(2)
    return [by_code[code] for code in wanted]


@rules_app.command("list", epilog="Example: phalanx rules list --symptom perf.hang")
def list_rules(
    symptom: Annotated[str | None, typer.Option(help="Only rules of this symptom id.")] = None,
    framework: Annotated[str | None, typer.Option(help="Only rules for this framework.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """All rules: code, symptom, cause, title."""
    rules = [
        rule
        for rule in load_rules()
        if (symptom is None or symptom in (rule.symptom, *rule.by_stage.values()))
        and (framework is None or not rule.frameworks or framework in rule.frameworks)
    ]
    if as_json:
        rows = [
            {"code": r.code, "symptom": r.symptom, "cause": r.cause, "title": r.title, "status": r.status}
            for r in rules
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    for rule in rules:
        typer.echo(f"{rule.code}  {rule.symptom:<42} {rule.cause:<44} {rule.title}")
    typer.echo(f"{len(rules)} rules", err=True)


@rules_app.command(epilog="Example: phalanx rules explain HNG001")
def explain(
    code: Annotated[
        str, typer.Argument(help="The rule's code; or a symptom or class of fixes, as verdicts print them.")
    ],
) -> None:
    """What a rule means, how to confirm it, how to mend it; for codes of `phalanx check train.py` too."""
    text = text_of_rule(code) or _text_of_class(code)
    if text is None:
        _pick([code])  # says what to give instead
        return
    from rich.markdown import Markdown  # loads a lexer for every language: only where it is shown

    Console().print(Markdown(text))


def _text_of_class(name: str) -> str | None:
    """What verdicts print in brackets beside a code: a symptom, or a class of fixes."""
    if (symptom := SYMPTOMS.get(name.lower())) is not None:
        own = sorted((rule.code, rule.title) for rule in load_rules() if rule.symptom == symptom.id)
        listed = "\n".join(f"- {code}: {title}" for code, title in own)
        text = (
            f"A symptom: {symptom.looks_like}. `phalanx rules explain {own[0][0]}` says more of a rule." if own else ""
        )
        return f"# {symptom.id}: {symptom.title}\n\n{text}\n\n{listed}"
    if (pattern := FIX_PATTERNS.get(name.lower())) is not None:
        return f"# {pattern.id}: {pattern.title}\n\nA class of fixes. {pattern.do}"
    return None


@rules_app.command("scripts")
def script_rules() -> None:
    """The rules of `phalanx check train.py`: code, group, symptom, title."""
    for loaded in load_lint_rules():
        note = "" if loaded.rule.default else " (only if selected)"
        typer.echo(f"{loaded.rule.code}  {loaded.group:<13} {loaded.rule.symptom:<42} {loaded.title}{note}")
    typer.echo(f"{len(load_lint_rules())} rules", err=True)


@rules_app.command("test", epilog="Example: phalanx rules test HNG001 --write-messages")
def run_cases(
    codes: Codes = None,
    fill_in: Annotated[
        bool, typer.Option("--write-messages", help="Fill in missing messages of cases that fire.")
    ] = False,
) -> None:
    """Run the cases that rules carry, each against all other rules."""
    everything = load_rules()
    picked = _pick(codes)
    problems = []
    from rich.progress import track

    shown = track(picked, description="rules", console=Console(stderr=True), transient=True, disable=len(picked) < 20)
    for rule in shown:
        if fill_in:
            written = write_messages(rule, everything)
            if written:
                typer.echo(f"{rule.code}: wrote {written} messages")
                continue
        problems += check_rule(rule, everything)
    for problem in problems:
        typer.echo(f"{problem.code}: case {problem.case!r}: {problem.text}")
    bad_files = load_pack().problems
    for text in bad_files:
        typer.echo(text)
    cases = sum(len(rule.cases) for rule in picked)
    typer.echo(f"{len(picked)} rules, {cases} cases, {len(problems) + len(bad_files)} problems")
    raise typer.Exit(1 if problems or bad_files else 0)


@rules_app.command()
def symptoms() -> None:
    """The 30 symptoms, with the study's counts."""
    table = Table("symptom", "faults", "distributed", "looks like")
    for symptom in SYMPTOMS.values():
        table.add_row(
            symptom.id, str(fault_count(symptom.id)), f"{distributed_share(symptom.id):.0%}", symptom.looks_like
        )
    Console().print(table)


@rules_app.command()
def fixes() -> None:
    """The fix patterns, with how many of the study's faults each cured."""
    counts = load_figures()["fixes"]
    table = Table("pattern", "cured", "what to do")
    for pattern in FIX_PATTERNS.values():
        table.add_row(pattern.id, str(counts.get(pattern.id, {}).get("count", 0)), pattern.do)
    Console().print(table)
