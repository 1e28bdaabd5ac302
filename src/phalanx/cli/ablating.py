"""`phalanx faults score --ablate`: switches off one part of the diagnosis at a time, over all recorded logs and cases, on all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from rich.console import Console
from rich.progress import track

from phalanx.diagnosis.ablation import all_parts, reports_without
from phalanx.knowledge import Rule, load_rules
from phalanx.knowledge.rule import Case
from phalanx.model import Report
from phalanx.sources import Input, find_inputs, from_text
from phalanx.zoo.ablate import Effect, Outcome, Part, effects
from phalanx.zoo.fault import Fault, FaultError
from phalanx.zoo.score import Mark, mark

_Causes = Mapping[str, frozenset[str]]
_Task = tuple[Fault, _Causes] | tuple[str, Case]


def ablate(faults: Sequence[Fault], causes: _Causes, *, with_cases: bool) -> dict[Part, Effect]:
    """The effect of each part's removal over the faults' recorded logs and, if wanted, the rules' own cases."""
    rules = _rules()
    tasks: list[_Task] = [(fault, causes) for fault in faults if fault.recorded.is_dir()]
    tasks += [(rule.code, case) for rule in rules for case in rule.cases if with_cases]
    if not tasks:
        raise FaultError("there is nothing to score: no logs of the faults asked for")
    list(_outcomes(tasks[0]))  # compiles the rules, once for all processes
    console = Console(stderr=True)
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        done = track(
            pool.imap_unordered(_work, tasks, chunksize=8),
            "logs and cases",
            total=len(tasks),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        outcomes = [outcome for found in done for outcome in found]
    return effects([(part.kind, part.name) for part in all_parts(rules)], outcomes)


@cache
def _rules() -> tuple[Rule, ...]:
    return load_rules()


def _work(task: _Task) -> list[Outcome]:
    return list(_outcomes(task))


def _outcomes(task: _Task) -> Iterator[Outcome]:
    first, second = task
    if isinstance(first, Fault):
        inputs, _ = find_inputs([str(first.recorded)])
        assert isinstance(second, Mapping)
        yield from _of_log(first, second, inputs)
    else:
        assert isinstance(second, Case)
        yield from _of_case(first, second)


def _of_log(fault: Fault, causes: _Causes, inputs: Sequence[Input]) -> Iterator[Outcome]:
    before: Mark | None = None
    for part, report in reports_without(inputs, _rules()):
        made = mark(fault, report.to_json(), causes=causes)
        if part is None or before is None:
            before = made
        else:
            yield Outcome((part.kind, part.name), fault.name, "", made != before, before, made)


def _of_case(code: str, case: Case) -> Iterator[Outcome]:
    before = None
    for part, report in reports_without([from_text(name, text) for name, text in case.files], _rules()):
        said = _said(report)
        if part is None:
            before = said
        else:
            yield Outcome((part.kind, part.name), case.name, code, said != before)


def _said(report: Report) -> tuple[object, ...]:
    verdict = report.verdict
    return () if verdict is None else (verdict.rule, verdict.symptom, verdict.cause, verdict.culprit_ranks)
