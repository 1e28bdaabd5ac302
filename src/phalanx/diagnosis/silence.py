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
    stacks = main_stacks(history.seen.events)
    ended = history.was_interrupted
    if _ended_well(history) or not (ended or _were_dumped(stacks, history)):
        return []
    waiting = [event for event in stacks if doing_of(event) is Doing.WAITING]
    elsewhere = [event for event in stacks if event not in waiting]
    starving = [event for event in stacks if doing_of(event) is Doing.DATA]
    # Stopped in the middle of their own work, or while they were still coming up: nothing says that they hung.
    if stacks and (not (waiting or starving) or all(map(is_importing, stacks))):
        return []
    stage = _stage(waiting, starving, history)
    exits = (event for event in history.seen.events if event.kind is EventKind.EXIT)
    proofs = [Proof(event, Role.ROOT) for event in waiting or stacks or exits]
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


def _ended_well(history: History) -> bool:
    """All ranks are through; or a watch looked all the time, and would have said that they stood still."""
    ranks = history.world.ranks
    are_done = bool(ranks) and all(rank.finished for rank in ranks) and not any(history.exit_codes.values())
    return history.is_clean or are_done or history.is_supervised


def _stage(waiting: list[Event], starving: list[Event], history: History) -> Stage | None:
    progressed = any(rank.last_step is not None for rank in history.world.ranks) or history.has_trained
    if waiting:
        return stage_of(waiting[0], history.file_of(waiting[0]), progressed)
    return Stage.TRAIN if progressed else Stage.PREP if starving else None


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
