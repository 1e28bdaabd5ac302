"""Evidence in, one verdict out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from phalanx.diagnosis.advice import helpful, what_was_not_checked
from phalanx.diagnosis.cores import parts_of
from phalanx.diagnosis.detectors import detect_all
from phalanx.diagnosis.history import History
from phalanx.diagnosis.judge import judge
from phalanx.diagnosis.match import apply_rules, patterns_of
from phalanx.diagnosis.naming import with_speakers
from phalanx.diagnosis.runs import last_run
from phalanx.diagnosis.world import SIGNS, build_world
from phalanx.knowledge import Rule, load_bare_rules
from phalanx.model import Report, Unchecked
from phalanx.model.ranks import speak_of
from phalanx.model.trace import Traces
from phalanx.sources import Collector, Input, Observations, find_inputs
from phalanx.sources.bundle import earlier_attempts, roles_in
from phalanx.sources.job_folders import find_jobs
from phalanx.sources.patience import UNLIMITED, WHOLE, Patience
from phalanx.sources.traces import find_traces, read_traces

if TYPE_CHECKING:
    from phalanx.diagnosis.afar import Party

__all__ = [
    "collector_of_rules",
    "diagnose_inputs",
    "diagnose_on",
    "diagnose_paths",
    "fired_rules",
    "judge_observations",
    "read_observations",
    "serve_logs",
]


def diagnose_paths(
    paths: list[str],
    progress: Callable[[int], None] | None = None,
    jobs: Sequence[Traces] | None = None,
    time_limit: float | None = WHOLE,
) -> Report:
    """Diagnose files, folders or `-`. Raises FileNotFoundError for a path that is not there.

    Files are read whole for `time_limit` seconds, None for ever; then only how they begin and end. A folder of several jobs
    gives the report on the newest, with those on all of them in `jobs`.
    """
    found = find_jobs(Path(paths[0])) if len(paths) == 1 and paths[0] != "-" and jobs is None else {}
    if found:
        share = time_limit / len(found) if time_limit else time_limit
        reports = [
            (name, diagnose_paths([str(path) for path in own], progress, None, share)) for name, own in found.items()
        ]
        return replace(reports[-1][1], jobs=tuple(reports))
    inputs, unchecked = find_inputs(paths)
    speak_of({rank: role for path in paths if path != "-" for rank, role in roles_in(Path(path)).items()})
    report = diagnose_inputs(inputs, load_bare_rules(), unchecked, progress, jobs, Patience.of(time_limit))
    restarts = [told for path in paths if path != "-" for told in earlier_attempts(Path(path))]
    return replace(report, restarts=(*report.restarts, *restarts)) if restarts else report


def diagnose_inputs(
    inputs: Sequence[Input],
    rules: Sequence[Rule],
    unchecked: Sequence[Unchecked] = (),
    progress: Callable[[int], None] | None = None,
    jobs: Sequence[Traces] | None = None,
    patience: Patience = UNLIMITED,
) -> Report:
    """Read the inputs, apply the rules, weigh what they say. `jobs`: their traces, where they were read before."""
    seen = read_observations(inputs, rules, progress, jobs, patience)
    report, _ = judge_observations(seen, rules)
    return replace(report, not_checked=(*unchecked, *report.not_checked)) if unchecked else report


def judge_observations(seen: Observations, rules: Sequence[Rule]) -> tuple[Report, frozenset[str]]:
    """The report on what was read, and the codes of all rules that fired, whether or not they reach the report."""
    seen, earlier = last_run(seen)
    world = build_world(seen)
    history = History(seen, world)
    claims = apply_rules(rules, seen, history)
    fired = frozenset(claim.rule.code for claim in claims if claim.rule is not None)
    findings = judge(claims, history, rules)
    missing = [*helpful(seen.unchecked, findings), *what_was_not_checked(findings, history)]
    read = tuple(file.name for file in seen.files)
    empty = () if findings or any(file.has_output for file in seen.files) else read
    return Report(world, tuple(findings), tuple(missing), read, empty, restarts=earlier), fired


def read_observations(
    inputs: Sequence[Input],
    rules: Sequence[Rule],
    progress: Callable[[int], None] | None = None,
    jobs: Sequence[Traces] | None = None,
    patience: Patience = UNLIMITED,
) -> Observations:
    """Read everything: collective traces by their own readers, the rest as logs and records."""
    traces, others = find_traces(inputs)
    seen = _read_logs(others, rules, progress, patience=patience)
    seen = with_speakers(replace(seen, events=[*seen.events, *detect_all(seen)]))
    if traces:
        found = list(jobs) if jobs is not None else read_traces(traces, progress)
        # The tables' library takes long to load: here, and not before `read_traces`, which does it while others read.
        from phalanx.diagnosis.trace_facts import with_traces

        return with_traces(seen, found)
    return seen


def _read_logs(
    inputs: Sequence[Input],
    rules: Sequence[Rule],
    progress: Callable[[int], None] | None,
    names: Sequence[str] = (),
    patience: Patience = UNLIMITED,
) -> Observations:
    parts = parts_of(inputs)
    # processes that start afresh know the rules that come with the package, and no others
    if len(parts) > 1 and _ByIdentity(rules) == _ByIdentity(load_bare_rules()):
        from phalanx.diagnosis.cores import read_on_all_cores

        return read_on_all_cores(parts, names or [one.name for one in inputs], progress, patience)
    return _collector(tuple(rules)).collect(inputs, progress, names, patience)


def serve_logs(paths: Sequence[str]) -> int:
    """The side of `diagnose_on` that runs on a host."""
    from phalanx.diagnosis.afar import serve

    rules = load_bare_rules()
    return serve(paths, lambda inputs, names: _read_logs(inputs, rules, None, names, Patience.of(WHOLE)))


def diagnose_on(parties: Sequence[Party], say: Callable[[str], None]) -> Report:
    """Diagnose logs that lie on other hosts. Raises ValueError if none answers."""
    from phalanx.diagnosis.afar import diagnose_afar

    return diagnose_afar(parties, load_bare_rules(), judge_observations, say)


def collector_of_rules() -> Collector:
    """For the rules that come with the package."""
    return _collector(tuple(load_bare_rules()))


def fired_rules(inputs: Sequence[Input], rules: Sequence[Rule]) -> set[str]:
    """The codes of all rules that fire, whether or not they reach the report."""
    seen = read_observations(inputs, rules)
    history = History(seen, build_world(seen))
    return {claim.rule.code for claim in apply_rules(rules, seen, history) if claim.rule is not None}


class _ByIdentity(tuple[Rule, ...]):
    """Rules hold dicts, which do not hash; a set of rules is compiled once for the tuple it came in."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(rule.code for rule in self))


@lru_cache(maxsize=4)
def _compiled(rules: _ByIdentity) -> Collector:
    return Collector(patterns_of(rules), SIGNS)


def _collector(rules: tuple[Rule, ...]) -> Collector:
    return _compiled(_ByIdentity(rules))
