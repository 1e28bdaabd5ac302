"""Hangs that nobody put into words: the job was ended from outside, or its stacks were dumped, while ranks stood still.

A stack tells where each rank was: those inside a collective were waiting, the rank that
was elsewhere is whom they waited for.
"""

from __future__ import annotations

from phalanx.blame import Doing
from phalanx.diagnosis.claim import Claim, Proof
from phalanx.diagnosis.history import History
from phalanx.diagnosis.stack_state import doing_of, is_importing, main_stacks
from phalanx.diagnosis.stage import stage_of
from phalanx.diagnosis.world import CONNECTED
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Confidence, Event, EventKind, Role, Stage

_OF_FEEDS = ("fix-dataset-api-usage", "fix-behavior-logic", "fix-memory-or-core-setting")
_SYMPTOMS: dict[Stage | None, str] = {Stage.COMM: "comm.hang-timeout", Stage.PREP: "prep.hang-timeout"}


def find_silent_hang(history: History) -> list[Claim]:
    """At most one claim: the job was ended from outside and did not end well, or its stacks were dumped while it stood still."""
    ranks = history.world.ranks
    ended_well = bool(ranks) and all(rank.finished for rank in ranks) and not any(history.exit_codes.values())
    if history.is_clean or ended_well or history.is_supervised:
        return []  # a watch that looked all the time would have said so
    stacks = main_stacks(history.seen.events)
    if not history.was_interrupted and not _were_dumped(stacks, history):
        return []
    waiting = [event for event in stacks if doing_of(event) is Doing.WAITING]
    elsewhere = [event for event in stacks if event not in waiting]
    starving = [event for event in stacks if doing_of(event) is Doing.DATA]
    if stacks and not waiting and not starving:
        return []  # stopped in the middle of their own work: nothing says that they hung
    if stacks and all(is_importing(event) for event in stacks):
        return []  # it was stopped while it was still coming up
    progressed = any(rank.last_step is not None for rank in history.world.ranks) or history.has_trained
    stages = [stage_of(event, history.file_of(event), progressed) for event in waiting]
    stage = stages[0] if stages else (Stage.TRAIN if progressed else Stage.PREP if starving else None)
    proofs = [Proof(event, Role.ROOT) for event in waiting or stacks]
    if not proofs:
        proofs = [Proof(event, Role.ROOT) for event in history.seen.events if event.kind is EventKind.EXIT]
    ended = history.was_interrupted
    return [
        Claim(
            rule=None,
            symptom=_symptom(stage, history),
            cause="stopped-from-outside-while-waiting" if ended else "waits-in-its-stacks",
            title=("The job hung until it was ended from outside" if stacks else "The job was ended from outside")
            if ended
            else "The job hangs: its stacks wait",
            summary=_summary(waiting, elsewhere, starving, "; the job was then ended from outside" if ended else ""),
            depth=Claims.SYMPTOM,
            blame=Blame.SILENT,
            fatal=True,
            priority=20,
            confidence=Confidence.POSSIBLE,
            proofs=(*proofs, *(Proof(event, Role.SUPPORTS) for event in elsewhere if waiting)),
            stage=stage,
            patterns=_OF_FEEDS if starving else (),
        )
    ]


def _were_dumped(stacks: list[Event], history: History) -> bool:
    """Somebody asked two or more living processes where they are, one of them waits, and none is known to have gone on."""
    dumped = [event for event in stacks if event.source == "stack" and not history.went_on_after(event)]
    processes = {(event.file, event.rank, event.data.get("pid")) for event in dumped}
    return len(processes) > 1 and any(doing_of(event) is Doing.WAITING for event in dumped)


def _symptom(stage: Stage | None, history: History) -> str:
    """Where nothing tells the stage, ranks that had found one another were past the set-up."""
    connected = any(file.signs[CONNECTED] for file in history.seen.files)
    return _SYMPTOMS.get(stage, "perf.hang") if stage is not None or connected else "comm.hang-timeout"


def _summary(waiting: list[Event], elsewhere: list[Event], starving: list[Event], end: str) -> str:
    if starving and not waiting:
        return f"{{ranks|The process}} waited for its own data{_where(starving[0])}: the workers or threads that load it stood still or were gone{end}."
    if waiting and elsewhere:
        return f"{{ranks|Some ranks}} waited in a collective{_where(waiting[0])}, while {{culprits|another process}} was elsewhere{_where(elsewhere[0])}{end}."
    if waiting:
        return f"{{ranks|The processes}} waited for other ranks{_where(waiting[0])}{{culprits?; {{culprits}} never joined}}{end}."
    return "The job was ended from outside before it was done; the log does not show whether it hung{culprits?, and {culprits} is behind the others}."


def _where(event: Event) -> str:
    """` at train.py:88`, or nothing."""
    return f" at {event.user_frame.place}" if event.user_frame is not None else ""
