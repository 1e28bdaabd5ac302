"""Applies the rules to what was observed: which of them fire, on what evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from phalanx.diagnosis.claim import Claim, Proof
from phalanx.diagnosis.history import History
from phalanx.knowledge import EvidenceSpec, Ranks, Rule
from phalanx.knowledge.literals import required_literals
from phalanx.model import Confidence, Event, EventKind, Role
from phalanx.sources import Match, Observations, Pattern
from phalanx.sources.readers.exits import normal_code

SpecKey = tuple[str, int]
_RAISED_AGAIN = "Caught "  # as PyTorch says it of what a data loader's worker or a replica raised
_NEAR = 3  # lines between that and the worker's own traceback
_ONCE = (Role.EXCLUDES, Role.REQUIRES, Role.SUPPORTS)


def patterns_of(rules: Iterable[Rule]) -> list[Pattern]:
    """What the scanner has to look for on behalf of the rules."""
    return [
        Pattern(
            (rule.code, index),
            spec.line,
            spec.literals,
            spec.line.ignores_case,
            is_common=spec.is_common,
            once=spec.role in _ONCE and spec.ranks is Ranks.ANY,
            literals_by=partial(required_literals, spec.line.pattern),
        )
        for rule in rules
        for index, spec in enumerate(rule.evidence)
        if spec.line is not None
    ]


def apply_rules(rules: Sequence[Rule], seen: Observations, history: History) -> list[Claim]:
    """A claim for every rule that fires. Evidence after which the rank trained on is no evidence of a fatal fault."""
    by_spec: dict[SpecKey, list[Match]] = defaultdict(list)
    for match in seen.matches:
        by_spec[match.key].append(match)  # type: ignore[index]
    exceptions = _ExceptionIndex(seen.events)
    facts: dict[str, list[Event]] = defaultdict(list)
    for event in seen.events:
        if event.fact is not None:
            facts[event.fact.id].append(event)
    claims = []
    for rule in rules:
        found = [
            (spec, _proofs(rule, index, spec, by_spec, facts, seen, history, exceptions))
            for index, spec in enumerate(rule.evidence)
        ]
        claim = _claim(rule, found, history)
        if claim is not None:
            claims.append(claim)
    return claims


class _ExceptionIndex:
    """Finds the exception a matched line is part of, for the stack that comes with it."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._by_file: dict[str, list[tuple[int, int, Event]]] = defaultdict(list)
        for event in events:
            if event.kind is EventKind.EXCEPTION and event.frames:
                start = int(event.data.get("starts", event.line))
                self._by_file[event.file].append((start, event.line + event.text.count("\n") + 12, event))

    def around(self, event: Event) -> Event:
        """The exception whose frames or message hold this line, of the same rank; else the event itself. Of one that was raised
        again for a worker process, what the worker itself raised."""
        found = self._holding(event)
        return self._of_worker(found) if found.text.partition(": ")[2].startswith(_RAISED_AGAIN) else found

    def _of_worker(self, outer: Event) -> Event:
        nested = (
            one
            for start, _, one in self._by_file.get(outer.file, ())
            if one.rank == outer.rank and one.data.get("is_nested") and 0 < start - outer.line <= _NEAR
        )
        return next(nested, outer)

    def _holding(self, event: Event) -> Event:
        if event.kind is not EventKind.LINE:
            return event
        needle = event.text.strip()[:60]
        for start, stop, exception in self._by_file.get(event.file, ()):
            if exception.rank != event.rank or not start <= event.line <= stop:
                continue
            if event.line <= exception.line or needle in exception.text:
                return exception
        return event


def _proofs(
    rule: Rule,
    index: int,
    spec: EvidenceSpec,
    by_spec: dict[SpecKey, list[Match]],
    facts: dict[str, list[Event]],
    seen: Observations,
    history: History,
    exceptions: _ExceptionIndex,
) -> list[Proof]:
    if spec.line is not None:
        proofs: dict[tuple[str, int, int | None], Proof] = {}
        for match in by_spec.get((rule.code, index), ()):
            event = exceptions.around(match.event)
            if spec.outside is not None and any(
                spec.outside.search(f"{one.path} {one.function}") for one in event.frames
            ):
                continue
            proofs.setdefault(
                (event.file, event.line, event.rank),
                Proof(event, spec.role, match.captures, match.after_progress, match.event.text),
            )
        return [*proofs.values(), *_exits(spec, history)]
    if spec.fact is not None:
        return [
            Proof(event, spec.role, event.fact.texts())
            for event in facts.get(spec.fact.id, ())
            if event.fact is not None and spec.fact.matches(event.fact)
        ]
    return _exits(spec, history)


def _exits(spec: EvidenceSpec, history: History) -> list[Proof]:
    codes = {normal_code(code) for code in spec.exit_codes}
    return [Proof(event, spec.role) for event in history.own_deaths if event.data["code"] in codes]


def _claim(rule: Rule, found: list[tuple[EvidenceSpec, list[Proof]]], history: History) -> Claim | None:
    if any(proofs for spec, proofs in found if spec.role is Role.EXCLUDES):
        return None
    if any(not proofs for spec, proofs in found if spec.role is Role.REQUIRES):
        return None
    roots = [
        proof
        for spec, proofs in found
        if spec.role is Role.ROOT and _on_enough(spec, proofs, history)
        for proof in proofs
    ]
    roots = [proof for proof in roots if not history.is_kill_by_launcher(proof.event)]
    if rule.fatal:
        roots = [proof for proof in roots if not history.went_on_after(proof.event)]
    if not roots:
        return None
    others = [proof for spec, proofs in found if spec.role not in (Role.ROOT, Role.EXCLUDES) for proof in proofs]
    supported = any(proof.role is Role.SUPPORTS for proof in others)
    confidence = rule.confidence
    if confidence is Confidence.POSSIBLE and supported:
        confidence = Confidence.LIKELY
    return Claim(
        rule=rule,
        symptom=rule.symptom,
        cause=rule.cause,
        title=rule.title,
        summary=rule.summary,
        depth=rule.claims,
        blame=rule.blame,
        fatal=rule.fatal,
        priority=rule.priority,
        confidence=confidence,
        proofs=(*roots, *others),
    )


def _on_enough(spec: EvidenceSpec, proofs: list[Proof], history: History) -> bool:
    """Whether as many ranks show it as the rule asks."""
    if spec.ranks is Ranks.ANY:
        return bool(proofs)
    ranks = {proof.event.rank for proof in proofs if proof.event.rank is not None}
    everyone = history.world.all_ranks
    match spec.ranks:
        case Ranks.ONE:
            return len(ranks) == 1
        case Ranks.SOME:
            return bool(ranks) and ranks < everyone
        case _:
            return bool(ranks) and ranks >= everyone
