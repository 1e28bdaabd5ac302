"""Weighs the claims against one another and turns them into findings, the verdict first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from phalanx.diagnose.agreement import find_disagreements
from phalanx.diagnose.blame import assign_blame
from phalanx.diagnose.claim import SPECIFIC, Claim
from phalanx.diagnose.deviation import deviation_of
from phalanx.diagnose.finding import as_finding
from phalanx.diagnose.history import History
from phalanx.diagnose.silence import find_silent_hang
from phalanx.diagnose.stage import assumed_stage, is_building, stage_of
from phalanx.diagnose.unknown import unexplained
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import EventKind, Finding, Stage
from phalanx.sources.readers.interruptions import SOURCE as INTERRUPTION

if TYPE_CHECKING:
    from phalanx.diagnose.complaints import Complaints

_MOST_FINDINGS = 12
_MOST_POINTS = 6.0  # what words can add to a claim in full;
_BEYOND = 0.25  # of what is more, so that two symptoms that both have as much are still told apart
# What is an import error if the user's line that raised it is an import, whatever the exception is called.
_AT_IMPORT = frozenset(("fail.attribute-not-found", "fail.not-implemented", "fail.other"))
_IN_TITLE = 3.0  # what a message gains that stands in a report's title
_BESIDE_ERROR = 2.0  # what a warning of slowness loses where the person tells of an error that was pasted


def judge(claims: list[Claim], history: History) -> list[Finding]:
    """The findings, best first."""
    if history.was_only_interrupted:
        return []  # whatever ranks said while they were ended says nothing of the job
    claims = [claim for claim in claims if not _is_gainsaid(claim, history)]
    claims += unexplained(claims, history) + find_disagreements(history)
    for claim in claims:
        claim.stage = claim.stage or _stage(claim, history)
        claim.ended_its_rank = not claim.fatal and _ended_its_rank(claim, history)
        claim.fatal |= claim.ended_its_rank
        if claim.rule is not None:
            claim.symptom = claim.rule.symptom_at(claim.stage)
        if claim.symptom == "fail.communication-error" and _was_still_waiting(claim, history):
            claim.symptom = "perf.hang"
        if claim.stage is Stage.BUILD and claim.symptom in _AT_IMPORT:
            claim.symptom = "build.import-error"
        if claim.symptom == "build.import-error" and any(is_building(proof.event) for proof in claim.roots):
            claim.symptom = "build.install-failure"
    _set_back_later_attempts(claims, history)
    _set_back_launchers(claims, history)
    assign_blame(claims, history)
    for claim in claims:
        if (deviation := deviation_of(claim, history)) is not None:
            claim.cause, claim.deviation, claim.pointed = deviation.cause, deviation.says, deviation.patterns
    if not any(claim.fatal for claim in claims):
        claims += find_silent_hang(history)
    complaints = _complaints(history)
    if complaints is not None:
        claims = [claim for claim in claims if complaints.is_meant(claim)] + complaints.as_claims()
        for claim in claims:
            complaints.place(claim)
        if complaints.only_ask:
            claims = [claim for claim in claims if not claim.from_prose and not complaints.only_mend]
    ordered = sorted(claims, key=lambda claim: _weight(claim, history), reverse=True)
    if complaints is not None and not (complaints.name_nothing and _tells_by_itself(ordered, history)):
        ordered = sorted(claims, key=lambda claim: _weight_in_report(claim, complaints), reverse=True)
    return [as_finding(claim, history) for claim in _independent(ordered)[:_MOST_FINDINGS]]


def _set_back_later_attempts(claims: list[Claim], history: History) -> None:
    """Ranks that do not find one another when a job is started again suffer from what had ended its first attempt."""
    attempts = {id(claim): {history.is_of_first_attempt(proof.event) for proof in claim.roots} for claim in claims}
    if not any(True in attempts[id(claim)] and claim.fatal and not _is_about_meeting(claim) for claim in claims):
        return
    for claim in claims:
        if attempts[id(claim)] == {False} and _is_about_meeting(claim):
            claim.depth = Claims.VICTIM


def _set_back_launchers(claims: list[Claim], history: History) -> None:
    """A launcher that gives up waiting for workers after one has failed (Horovod's elastic driver) suffers from what that one says."""
    deaths = [event for event in history.own_deaths if event.data["code"] != 0]
    others = [
        claim for claim in claims if claim.fatal and not _is_about_meeting(claim) and claim.depth is not Claims.VICTIM
    ]
    told = [proof.event for claim in others for proof in claim.roots if proof.event.rank is not None]
    first: dict[str, int] = {}
    for event in told + deaths if told else []:
        first[event.file] = min(event.line, first.get(event.file, event.line))
    for claim in claims:
        own = [proof.event for proof in claim.roots]
        if own and _is_about_meeting(claim) and all(
            event.rank is None and first.get(event.file, event.line) < event.line for event in own
        ):  # fmt: skip
            claim.depth = Claims.VICTIM


def _is_about_meeting(claim: Claim) -> bool:
    return claim.is_communication or claim.symptom.startswith("comm.")


def _is_gainsaid(claim: Claim, history: History) -> bool:
    """Whether it rests on recorders alone where the watch of the same moment saw more: roots, sends and receives, the script's
    conditions and loops are not in them, and a rank that waits for a message has nothing outstanding there."""
    by_trace = bool(claim.roots) and all(proof.event.source == "trace" for proof in claim.roots)
    return by_trace and any(event.data.get("settled") for event in history.seen.events if event.source == "watch")


def _complaints(history: History) -> Complaints | None:
    """What people say, where nothing but their reports was given."""
    if not history.is_only_report:
        return None
    from phalanx.diagnose.complaints import Complaints  # its many expressions take longer than most logs

    return Complaints(history)


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
        proof.event.rank in died and last.get(proof.event.rank) == (proof.event.file, proof.event.line)
        for proof in claim.roots
    )


def _weight(claim: Claim, history: History) -> tuple[float, ...]:
    """How much a claim weighs: that it ended the job, how deep it goes, whether the accused says it itself, whether
    few ranks say it (victims are many), how sure and how specific it is, and only then how early it is by clock and line."""
    world = len(history.world.all_ranks)
    minority = bool(claim.printers) and len(claim.printers) * 2 <= world and world > 1
    first = min((proof.event.line for proof in claim.roots), default=0)
    times = [proof.event.time for proof in claim.roots if proof.event.time is not None]
    return (
        claim.fatal and not _is_vague_in_report(claim, history),
        claim.depth.depth,
        not claim.is_about_others and not (claim.is_communication and claim.blame is Blame.NOBODY),
        minority and claim.depth is not Claims.VICTIM,
        claim.priority >= SPECIFIC,
        not claim.from_prose,
        claim.confidence.weight,
        claim.priority,
        -min(times, default=math.inf),
        -first,
    )


def _tells_by_itself(ordered: list[Claim], history: History) -> bool:
    """Whether what was pasted into a report is a log that says how ranks ended, or what caused it, and needs no words beside it."""
    if history.own_deaths:
        return True
    best = ordered[0] if ordered else None
    return best is not None and best.depth is Claims.CAUSE and best.priority >= SPECIFIC and not best.from_prose


def _weight_in_report(claim: Claim, complaints: Complaints) -> float:
    """Messages pasted into a report are proof only of what the person complains about, so both weigh together."""
    is_general = claim.priority < SPECIFIC
    if claim.rule is None:
        proof = 0.0 if claim.from_prose else 1.5
    elif claim.from_prose:
        proof = 1.5 if is_general else 3.0 if claim.depth is Claims.CAUSE else 2.5
    elif is_general:
        proof = 1.5
    else:
        proof = 2.0 + claim.confidence.weight
    if claim.depth is Claims.VICTIM:
        proof -= 1.5
    if complaints.is_side_remark(claim):
        proof -= _BESIDE_ERROR
    if not is_general and complaints.is_in_title(claim):
        proof += _IN_TITLE
    knows_why = claim.rule is not None and claim.depth is Claims.CAUSE
    said = complaints.points(claim.symptom, with_alike=knows_why)
    if claim.rule is not None:  # people name the message, which has other symptoms at other stages
        said = max(said, complaints.points(claim.rule.symptom, with_alike=knows_why))
    return proof + min(said, _MOST_POINTS) + _BEYOND * max(0.0, said - _MOST_POINTS) + claim.priority / 100


def _is_vague_in_report(claim: Claim, history: History) -> bool:
    """A general catch in a person's report: what the person says is wrong tells more than any exception pasted there."""
    files = [history.file_of(proof.event) for proof in claim.roots]
    is_report = all(file is not None and file.is_report for file in files)
    return is_report and (claim.rule is None or claim.priority < SPECIFIC)


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
            if places <= used and not claim.from_prose:
                continue
            if claim.from_prose and (any(k.fatal for k in kept) or any(k.symptom == claim.symptom for k in kept)):
                continue
            if any(k.cause == claim.cause and k.symptom == claim.symptom for k in kept):
                continue
        kept.append(claim)
        used |= places
    return kept
