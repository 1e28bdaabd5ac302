"""Hangs that nobody put into words: the job was ended from outside while ranks stood still.

A stack that an interruption printed tells where each rank was: those inside a collective were waiting, the rank that
was elsewhere is whom they waited for.
"""

from __future__ import annotations

from phalanx.blame import Doing
from phalanx.diagnose.claim import Claim, Proof
from phalanx.diagnose.history import History
from phalanx.diagnose.stack_state import doing_of, is_importing, is_launcher
from phalanx.diagnose.stage import stage_of
from phalanx.diagnose.world import CONNECTED
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Confidence, Event, EventKind, Role, Stage

_OF_FEEDS = ("fix-dataset-api-usage", "fix-behavior-logic", "fix-memory-or-core-setting")
_SYMPTOMS: dict[Stage | None, str] = {Stage.COMM: "comm.hang-timeout", Stage.PREP: "prep.hang-timeout"}


def find_silent_hang(history: History) -> list[Claim]:
    """At most one claim, and only if the job was ended from outside and did not end well."""
    ranks = history.world.ranks
    ended_well = bool(ranks) and all(rank.finished for rank in ranks) and not any(history.exit_codes.values())
    if not history.was_interrupted or history.is_clean or ended_well or history.is_supervised:
        return []  # a watch that looked all the time would have said so
    stacks = [event for event in history.seen.events if event.kind is EventKind.STACK and not is_launcher(event)]
    waiting = [event for event in stacks if doing_of(event) is Doing.WAITING]
    elsewhere = [event for event in stacks if event not in waiting and event.rank is not None]
    starving = [event for event in stacks if doing_of(event) is Doing.DATA]
    if stacks and not waiting and len(history.world.all_ranks) < 2:
        return []  # one process, stopped in the middle of its own work: nothing says that it stood still
    if stacks and all(is_importing(event) for event in stacks):
        return []  # it was stopped while it was still coming up
    progressed = any(rank.last_step is not None for rank in history.world.ranks) or history.has_trained
    stages = [stage_of(event, history.file_of(event), progressed) for event in waiting]
    stage = stages[0] if stages else (Stage.TRAIN if progressed else Stage.PREP if starving else None)
    proofs = [Proof(event, Role.ROOT) for event in waiting or stacks]
    if not proofs:
        proofs = [Proof(event, Role.ROOT) for event in history.seen.events if event.kind is EventKind.EXIT]
    return [
        Claim(
            rule=None,
            symptom=_symptom(stage, history),
            cause="stopped-from-outside-while-waiting",
            title="The job stood still until it was ended from outside",
            summary=_summary(waiting, elsewhere, starving),
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


def _symptom(stage: Stage | None, history: History) -> str:
    """Where nothing tells the stage, ranks that had found one another were past the set-up."""
    connected = any(file.signs[CONNECTED] for file in history.seen.files)
    return _SYMPTOMS.get(stage, "perf.hang") if stage is not None or connected else "comm.hang-timeout"


def _summary(waiting: list[Event], elsewhere: list[Event], starving: list[Event]) -> str:
    if starving and not waiting:
        return f"{{ranks|The process}} waited for its own data{_where(starving[0])}: the workers or threads that load it stood still or were gone. The job was then ended from outside."
    if waiting and elsewhere:
        return f"{{ranks|Some ranks}} waited in a collective{_where(waiting[0])}, while {{culprits|another rank}} was elsewhere{_where(elsewhere[0])}; the job was then ended from outside."
    if waiting:
        return f"{{ranks|The process}} waited for other ranks{_where(waiting[0])} until the job was ended from outside{{culprits?; {{culprits}} did not come}}."
    return "The job made no more progress and was ended from outside{culprits?; {culprits} is behind the others}."


def _where(event: Event) -> str:
    """` at train.py:88`, or nothing."""
    return f" at {event.user_frame.place}" if event.user_frame is not None else ""
