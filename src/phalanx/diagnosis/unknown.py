"""What to say where no rule fires: the failing rank, its exception and line, and the likeliest symptom."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Sequence

from phalanx.diagnosis.claim import WORDLESS, Claim, Proof, is_about_peers
from phalanx.diagnosis.history import History
from phalanx.diagnosis.origin import class_of, is_about_data, raised_by_user, symptom_of
from phalanx.diagnosis.stage import assumed_stage, stage_of
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Confidence, Event, Role
from phalanx.sources.readers.tracebacks import TRUNCATED
from phalanx.sources.text import without_numbers

_OF_ARGUMENTS = ("ValueError", "TypeError", "AssertionError", "KeyError", "IndexError", "NotImplementedError")
# What an exit status alone says.
_OF_EXITS = {-signal.SIGSEGV: "fail.segmentation-fault", -signal.SIGKILL: "fail.out-of-memory"}
_LAUNCHER = ("torch/distributed/run.py", "torch/distributed/launcher/api.py", "accelerate/commands/launch.py")
_PROGRAMS = ("/torchrun", "/accelerate", "/deepspeed")
_REFUSED = 2
_STOPS = re.compile(
    r"\b(?:stopp|abort|exit|terminat|quitt)ing\b", re.I
)  # what a script says before it leaves by itself


def unexplained(claims: Sequence[Claim], history: History) -> list[Claim]:
    """Claims for exceptions and deaths that no rule explains."""
    groups: dict[str, list[Event]] = {}
    for event in _last_exceptions(claims, history):
        groups.setdefault(_alike(event), []).append(event)
    made = [_from_exceptions(group, history) for group in groups.values()]
    silent_deaths = _silent_deaths(claims, history)
    return [*made, _from_deaths(silent_deaths, history)] if silent_deaths and not history.is_clean else made


def _last_exceptions(claims: Sequence[Claim], history: History) -> Iterable[Event]:
    """Of each speaker of whom no rule says why it failed, the last exception that it did not get over."""
    explained = {(proof.event.file, proof.event.line) for claim in claims for proof in claim.proofs}
    told: dict[tuple[str, int | None], int] = {}  # from which line on a rule says why it failed
    suffered: dict[tuple[str, int | None], int] = {}  # where a rank first said, by a rule, that it lost its peers
    for claim, event in ((one, proof.event) for one in claims if one.fatal for proof in one.roots):
        speaker = (event.file, event.rank)
        if claim.depth is Claims.VICTIM:
            suffered[speaker] = min(event.line, suffered.get(speaker, event.line))
        else:
            # Lines without a rank are of several: who raised before others gave up waiting is not one of those.
            start = event.line if event.rank is None and claim.symptom == "perf.hang" else 0
            told[speaker] = min(start, told.get(speaker, start))
    last: dict[tuple[str, int | None], Event] = {}
    for event in history.exceptions:
        speaker = (event.file, event.rank)
        if event.rank is not None and event.line > suffered.get(speaker, event.line):
            continue  # what a rank raises after that is what follows from it
        if (
            event.line >= told.get(speaker, event.line + 1)
            or (event.file, event.line) in explained
            or history.went_on_after(event)
        ):
            continue
        if (_only_passes_on(event) and len(history.exceptions) > 1) or _is_launchers_own(event):
            continue
        previous = last.get(speaker)
        if previous is None or event.data.get("is_nested") or not previous.data.get("is_nested"):
            last[speaker] = event
    return last.values()


def _silent_deaths(claims: Sequence[Claim], history: History) -> list[Event]:
    """Ends of ranks that said nothing. An exception without a rank may well be the words of a rank that ended with status 1."""
    words = {event.rank for event in history.exceptions} | {rank for claim in claims for rank in claim.printers}
    is_told = None in words or any(_STOPS.search(proof.event.text) for claim in claims for proof in claim.roots)
    silent = [
        event for event in history.own_deaths if event.rank not in words and (event.rank is not None or not is_told)
    ]
    may_have_said = bool(history.exceptions)  # who ended with the status of an exception, where nobody knows who did
    return [
        event for event in silent if event.data["code"] != 1 or not (is_told or (event.rank is None and may_have_said))
    ]


def _only_passes_on(event: Event) -> bool:
    """The parent's exception, which quotes that of the process it had started."""
    return bool(event.frames) and event.frames[-1].path.endswith("torch/multiprocessing/spawn.py")


def _is_launchers_own(event: Event) -> bool:
    """The launcher's exception, cut off before it says which of its processes failed."""
    if event.data.get("type") != TRUNCATED or not any(frame.path.endswith(_LAUNCHER) for frame in event.frames):
        return False
    return event.user_frame is None or event.user_frame.path.endswith(_PROGRAMS)


def _alike(event: Event) -> str:
    """Exceptions that differ in numbers and addresses only are the same."""
    return without_numbers(str(event.data.get("headline", event.text)))[:160]


def _from_exceptions(events: list[Event], history: History) -> Claim:
    event = events[0]
    stage = stage_of(event, history.file_of(event), False)
    if stage is None:
        is_waiting = is_about_peers(symptom_of(event, None))
        stage = assumed_stage(event, history.file_of(event), is_waiting, history.has_trained)
    symptom = symptom_of(event, stage)
    # A lost connection in the middle of the work is what the peers of a broken rank see.
    # Arguments that a library refuses are nobody else's doing.
    is_victim = (
        symptom in ("fail.communication-error", "prep.communication-error")
        and len(history.world.all_ranks) > 1
        and class_of(event) not in _OF_ARGUMENTS
    )
    own = raised_by_user(event)
    return Claim(
        rule=None,
        symptom=symptom,
        cause=f"unrecognised-{'build-error' if event.source == 'build' else 'exception'}",
        title=f"Uncaught {class_of(event) or 'error'}" + (" in the user's code" if own else ""),
        summary=_told(event),
        depth=Claims.VICTIM if is_victim else Claims.SYMPTOM,
        blame=Blame.PRINTER if event.source != "build" else Blame.NOBODY,
        fatal=True,
        priority=40,
        confidence=Confidence.POSSIBLE,
        proofs=tuple(Proof(one, Role.ROOT) for one in events),
        stage=stage,
        patterns=() if own is None else ("fix-dataset",) if is_about_data(event) else ("fix-behavior-logic",),
    )


def _told(event: Event) -> str:
    """What the headline leaves out: whether the user's own code raised it, or a library that it called."""
    frame, last = event.user_frame, event.frames[-1] if event.frames else None
    if class_of(event) == TRUNCATED:
        return "The end of the traceback, with the exception itself, is missing."
    if frame is None or last is None:
        return ""
    if raised_by_user(event) is not None:
        return f"Your own code raised it, at {_quoted(frame.place)}; no library did."
    if frame is last:
        return f"Your line {_quoted(frame.place)} made the call that failed."
    inside = "/".join(last.path.split("site-packages/")[-1].split("/")[-4:])
    return f"{_quoted(inside)} raised it in {_quoted(last.function)}; your code called it at {_quoted(frame.place)}."


def _quoted(text: str) -> str:
    """Braces of a message are not fields."""
    return " ".join(text.split())[:240].replace("{", "(").replace("}", ")")


def _hears_ranks(history: History) -> bool:
    """Whether any rank's own words are in the log, not only its launcher's."""
    spoke = any(rank is not None for file in history.seen.files for rank in file.ranks)
    return spoke or history.has_trained or any(file.rank is not None for file in history.seen.files)


def _from_deaths(events: list[Event], history: History) -> Claim:
    code = int(events[0].data["code"])
    how = (
        f"signal {-code} ({signal.Signals(-code).name})"
        if code < 0 and -code in signal.valid_signals()
        else f"status {code}"
    )
    symptom = _OF_EXITS.get(code, "fail.other")
    if code == _REFUSED and not history.has_trained:
        symptom = "prep.other"  # arguments are read before anything is trained
    why = events[0].data.get("why") or {}
    if why.get("cause") in ("killed", "asked-to-end"):
        symptom = "fail.other"  # the watch knows that it was not for memory
    # Who aborts says why; where no rank's words are in the log, it may be the watchdog of one that waited.
    is_unheard = code == -signal.SIGABRT and not why and not _hears_ranks(history)
    known = f": {_quoted(str(why['text']))}" if why.get("text") else " and printed no reason"
    return Claim(
        rule=None,
        symptom=symptom,
        cause=WORDLESS,
        title="A process ended and left no message",
        summary=f"{{ranks|A process}} ended with {how}{known}.",
        depth=Claims.SYMPTOM,
        blame=Blame.NOBODY if is_unheard else Blame.PRINTER,
        fatal=True,
        priority=30,
        confidence=Confidence.POSSIBLE,
        proofs=tuple(Proof(event, Role.ROOT) for event in events),
    )
