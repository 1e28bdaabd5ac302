"""Weighs the claims against one another and turns them into findings, the verdict first."""

from __future__ import annotations

import math
import signal
from collections.abc import Sequence
from dataclasses import replace

from phalanx.diagnosis.accuse import accuse_all
from phalanx.diagnosis.agreement import find_disagreements
from phalanx.diagnosis.claim import SPECIFIC, Claim
from phalanx.diagnosis.deviation import with_deviation
from phalanx.diagnosis.finding import as_finding
from phalanx.diagnosis.history import History
from phalanx.diagnosis.origin import is_about_data
from phalanx.diagnosis.silence import find_silent_hang
from phalanx.diagnosis.stage import assumed_stage, is_building, stage_of
from phalanx.diagnosis.unknown import unexplained
from phalanx.knowledge import Rule
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Event, EventKind, Finding, Stage
from phalanx.model.facts.stall import is_beyond_recorders
from phalanx.sources.readers.interruptions import SOURCE as INTERRUPTION

_MOST_FINDINGS = 12
# What is an import error if the user's line that raised it is an import, whatever the exception is called.
_AT_IMPORT = frozenset(("fail.attribute-not-found", "fail.not-implemented", "fail.other"))

_OF_FILES = frozenset(("fail.other", "prep.other", "fail.path-error"))


def judge(claims: list[Claim], history: History, rules: Sequence[Rule] = ()) -> list[Finding]:
    """The findings, best first. Each stage takes the claims of the one before and returns new ones."""
    if history.was_only_interrupted:
        return []  # whatever ranks said while they were ended says nothing of the job
    found = [claim for claim in claims if not _is_contradicted_by_watch(claim, history)]
    found += unexplained(found, history) + find_disagreements(history)
    found = _set_back_followers([_placed(claim, history) for claim in found], history)
    if not any(claim.fatal for claim in found):
        found += find_silent_hang(history)
    found = [with_deviation(claim, history, rules) for claim in accuse_all(found, history)]
    ordered = sorted(found, key=lambda claim: _weight(claim, history), reverse=True)
    return [as_finding(claim, history) for claim in _independent(ordered)[:_MOST_FINDINGS]]


def _placed(claim: Claim, history: History) -> Claim:
    """The claim with its stage, whether it ended a rank, and the symptom that follows from both."""
    stage = claim.stage or _stage(claim, history)
    ended = not claim.fatal and _ended_its_rank(claim, history)
    symptom = claim.rule.symptom_at(stage) if claim.rule is not None else claim.symptom
    if symptom == "fail.communication-error" and _was_still_waiting(claim, history):
        symptom = "perf.hang"
    if stage is Stage.BUILD and symptom in _AT_IMPORT:
        symptom = "build.import-error"
    if symptom in _OF_FILES and claim.roots and all(is_about_data(proof.event) for proof in claim.roots):
        symptom = "prep.data-loading-failure"  # whatever it is that a data set could not read
    if symptom == "build.import-error" and any(is_building(proof.event) for proof in claim.roots):
        symptom = "build.install-failure"
    return replace(claim, stage=stage, ended_its_rank=ended, fatal=claim.fatal or ended, symptom=symptom)


def _set_back_followers(claims: list[Claim], history: History) -> list[Claim]:
    """Who gives up waiting for ranks after one has failed, a launcher or the next attempt, suffers from what that one says, and
    so does who cannot connect to a rank that crashed in training."""
    has_crashed = any(-signal.SIGABRT != event.data["code"] < 0 for event in history.own_deaths)  # aborts: watchdogs'
    own = [claim for claim in claims if claim.fatal and not claim.is_meeting and claim.depth is not Claims.VICTIM]
    told = [proof.event for claim in own for proof in claim.roots if proof.event.rank is not None]
    first: dict[str, int] = {}
    for event in told + history.own_deaths if told else []:
        first[event.file] = min(event.line, first.get(event.file, event.line))

    def follows(claim: Claim) -> bool:
        late = (e.rank is None and first.get(e.file, e.line) < e.line for e in (proof.event for proof in claim.roots))
        lost = claim.is_communication and claim.blame is Blame.NOBODY and claim.stage is Stage.TRAIN
        return (claim.is_meeting and bool(claim.roots) and all(late)) or (lost and has_crashed)

    return [replace(claim, depth=Claims.VICTIM) if follows(claim) else claim for claim in claims]


def _is_contradicted_by_watch(claim: Claim, history: History) -> bool:
    """Whether it rests on recorders alone where the watch of the same moment saw more: roots, sends and receives, the script's
    conditions and loops are not in them, and a rank that waits for a message has nothing outstanding there."""
    by_trace = bool(claim.roots) and all(proof.event.source == "trace" for proof in claim.roots)
    if not by_trace:
        return False
    stalls = [event.fact for event in history.seen.events if event.fact and event.fact.id.startswith("stall.")]
    # Recorders only show that a program is elsewhere; the watch saw where.
    elsewhere = {fact.ranks for proof in claim.roots if (fact := proof.event.fact) and fact.id == "trace.host-stalled"}
    saw_where = any(fact.ranks in elsewhere and fact.fields.get("own") for fact in stalls)
    if not claim.culprits and all(proof.event.fact is not None and not proof.event.fact.ranks for proof in claim.roots):
        saw_where = saw_where or any(
            fact.fields.get("undecided") for fact in stalls
        )  # nor does it, but it names the lines
    return saw_where or any(is_beyond_recorders(fact) for fact in stalls)


def _stage(claim: Claim, history: History) -> Stage | None:
    """The stage of the earliest root evidence that tells one."""
    for proof in claim.roots:
        stage = stage_of(proof.event, history.file_of(proof.event), proof.after_progress)
        if stage is not None:
            return stage
    if not claim.roots:
        return None
    event = next((proof.event for proof in claim.roots if proof.event.user_frame is not None), claim.roots[0].event)
    return assumed_stage(event, history.file_of(event), claim.is_communication, history.has_trained)


def _was_still_waiting(claim: Claim, history: History) -> bool:
    """Connections broke only when ranks that had trained were ended from outside; until then they had stood, with nothing to say."""
    ends = {event.file: event.line for event in reversed(history.seen.events) if event.source == INTERRUPTION}
    interrupted = {
        event.rank for event in history.seen.events if event.kind is EventKind.STACK and event.source == "traceback"
    }
    others = history.world.all_ranks - claim.printers
    if claim.depth is Claims.VICTIM and history.has_trained and others and others <= interrupted:
        return True  # whom they lost had lived until somebody pressed a key
    return history.has_trained and bool(claim.roots) and all(
        ends.get(proof.event.file, proof.event.line) < proof.event.line for proof in claim.roots
    )  # fmt: skip


def _ended_its_rank(claim: Claim, history: History) -> bool:
    """What jobs may go on with was here the exception by which a rank ended: a check of the script's own that the loss is a number, say."""
    died = {event.rank for event in history.own_deaths}
    last = {event.rank: (event.file, event.line) for event in history.exceptions}
    return any(
        (proof.event.rank in died or _is_last_word(proof.event, history))
        and last.get(proof.event.rank) == (proof.event.file, proof.event.line)
        for proof in claim.roots
    )


def _is_last_word(event: Event, history: History) -> bool:
    """A traceback of a rank after which nothing of it comes, in a job that tells no exits."""
    if event.rank is None or not event.frames or history.exit_codes or history.went_on_after(event):
        return False
    file = history.file_of(event)
    entry = file.ranks.get(event.rank) if file is not None else None
    return entry is not None and entry.last_line <= event.line + event.text.count("\n") + 1


def _weight(claim: Claim, history: History) -> tuple[float, ...]:
    """How much a claim weighs: that it ended the job, how deep it goes, whether the accused says it itself, whether
    few ranks say it (victims are many), how sure and how specific it is, and only then how early it is by clock and line."""
    world = len(history.world.all_ranks)
    minority = bool(claim.printers) and len(claim.printers) * 2 <= world and world > 1
    first = min((proof.event.line for proof in claim.roots), default=0)
    times = [proof.event.time for proof in claim.roots if proof.event.time is not None]
    return (
        claim.fatal,
        claim.depth.depth,
        not claim.is_about_others and not (claim.is_communication and claim.blame is Blame.NOBODY),
        minority and claim.depth is not Claims.VICTIM,
        claim.priority >= SPECIFIC,
        claim.confidence.weight,
        claim.priority,
        -min(times, default=math.inf),
        -first,
    )


def _independent(ordered: list[Claim]) -> list[Claim]:
    """Drops what only repeats a better claim: the same lines again, victims' words, waits that a cause explains."""
    kept: list[Claim] = []
    used: set[tuple[str, int, int | None]] = set()
    for claim in ordered:
        places = {(proof.event.file, proof.event.line, proof.event.rank) for proof in claim.roots}
        if kept:
            if claim.depth is Claims.VICTIM or (
                claim.depth is Claims.SYMPTOM and any(k.depth is Claims.CAUSE for k in kept)
            ):
                continue
            if places <= used:
                continue
            if any(k.cause == claim.cause and k.symptom == claim.symptom for k in kept):
                continue
        kept.append(claim)
        used |= places
    return kept
