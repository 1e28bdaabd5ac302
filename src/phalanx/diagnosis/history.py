"""How each rank fared: whether it trained on after an event, how it ended, and whether it died by itself."""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from functools import cached_property

from phalanx.blame.teardown import FROM_OUTSIDE, Exit, killed_by_launcher, own_endings
from phalanx.diagnosis.harmless import WARNING, is_harmless
from phalanx.diagnosis.repeats import Repeats
from phalanx.diagnosis.teardown import announced_by_watchdog, without_teardown
from phalanx.diagnosis.threads import is_missed
from phalanx.model import Event, EventKind, Frame, World
from phalanx.sources import FileSurvey, Observations
from phalanx.sources.readers.tracebacks import TRUNCATED
from phalanx.sources.survey import SUPERVISED, RankSurvey

_RECORDS = ("record", "bundle", "watch")  # written by a launcher: lines in them have no order among the ranks' own
# Words of launchers that end a job because a rank failed, or that were told to stop.
_WRAPPERS = re.compile(
    r"ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException|SystemExit|KeyboardInterrupt"
    r"|BrokenProcessPool|SignalException|Horovod detected that one or more processes exited|RayTaskError|TrainingFailedError"
    r"|WorkerGroupError|BrokenPipeError|GracefulExit|Job has been shutdown, see above error"
)


# Horovod's stall reports: the only ones after which a job may go on.
_WAITING = re.compile(r"waiting for remainder of ranks|[Mm]issing ranks:|[Ss]talled (?:ops|ranks):|^\s*\d+!?: \[\w")
_NEAR = 40  # lines: a stall report is about as long
_KILL = re.compile(r"SIGKILL|exitcode\W{1,3}-9\b|[Ss]ignal:? 9\b")
_BACKWARD = "_engine_run_backward"
_STEPS = 2  # others may still print the step they were in


class History:
    """The observations by rank, for questions of order."""

    def __init__(self, seen: Observations, world: World) -> None:
        self.seen = seen
        self.world = world
        self._files: dict[str, FileSurvey] = {file.name: file for file in seen.files}

    def file_of(self, event: Event) -> FileSurvey | None:
        """The survey of the file an event stands in."""
        return self._files.get(event.file)

    def ranks_on(self, host: str | None) -> tuple[int, ...]:
        """The ranks that are known to have run on a host."""
        return next((one.ranks for one in self.world.hosts if one.name == host), ())

    @cached_property
    def _exits(self) -> list[Event]:
        """Exits that a rank is known for and that the job did not get over."""
        exits = [event for event in self.seen.events if event.kind is EventKind.EXIT and event.rank is not None]
        return [event for event in exits if not self._ended_well_after(event) and not self._outlived(event)]

    @cached_property
    def exit_codes(self) -> dict[int, int]:
        """How each rank ended, where it is told; the first word of it counts."""
        codes: dict[int, int] = {}
        for event in self._exits:
            if event.rank is not None:
                codes.setdefault(event.rank, int(event.data["code"]))
        return codes

    @cached_property
    def has_trained(self) -> bool:
        """Some rank has told of steps, or failed in a backward pass."""
        told = any(entry.first_progress is not None for file in self.seen.files for entry in file.ranks.values())
        return told or any(_BACKWARD in (frame.function for frame in event.frames) for event in self.exceptions)

    @cached_property
    def is_clean(self) -> bool:
        """Every rank is known to have ended with status 0."""
        codes = self.exit_codes
        return bool(codes) and not any(codes.values()) and codes.keys() >= self.world.all_ranks

    @cached_property
    def is_supervised(self) -> bool:
        """A launcher of ours kept the record: it is known who ended by itself and who was ended, and whether all stood still."""
        return any(file.signs[SUPERVISED] for file in self.seen.files)

    @cached_property
    def lacks_lines(self) -> bool:
        """A log into which several ranks write begins in the middle, or lines of it were left out: what is not there may be anybody's."""
        return any((file.is_cut or file.is_partly_read) and file.rank is None for file in self.seen.files)

    @cached_property
    def breaks_off(self) -> bool:
        """A log into which several ranks write ends before it names the exception: what other ranks had to say is cut off with it."""
        return any(file.rank is None for file in self._broken_off)

    @cached_property
    def _broken_off(self) -> list[FileSurvey]:
        """Files of which a speaker's last words are a traceback without its end. Very long ones are not read to theirs."""
        cut = [event for event in self.exceptions if event.data.get("type") == TRUNCATED]
        told = [(event, file, file.ranks.get(event.rank)) for event in cut if (file := self.file_of(event)) is not None]
        return [file for event, file, speaker in told if speaker and speaker.last_line <= event.line + 1]

    @cached_property
    def was_only_interrupted(self) -> bool:
        """A person or a time limit ended a job that was watched, in which nobody had died and nothing stood still."""
        stands = any(event.kind is EventKind.STALL and not self.went_on_after(event) for event in self.seen.events)
        ended = [event for event in self._exits if event.data.get("by")]
        return self.is_supervised and bool(ended) and not self.own_deaths and not stands

    @cached_property
    def own_deaths(self) -> list[Event]:
        """Exits that a rank brought on itself, and not well."""
        own = own_endings(
            self._endings,
            supervised=self.is_supervised,
            waited=any(event.kind in (EventKind.TIMEOUT, EventKind.STALL) for event in self.seen.events),
            announced=bool(announced_by_watchdog(self.seen.events)),
        )
        ended = FROM_OUTSIDE | {0}
        known = [event for event in self._exits if event.rank in own and event.data["code"] not in ended]
        return known or [event for event in self._exits_of_nobody if event.data["code"] not in ended]

    @cached_property
    def _exits_of_nobody(self) -> list[Event]:
        """Exits of which only the rank within some node is known, and that are not the doing of a watchdog or a launcher."""
        exits = [event for event in self.seen.events if event.kind is EventKind.EXIT and event.rank is None]
        waited = any(event.kind in (EventKind.TIMEOUT, EventKind.STALL) for event in self.seen.events)
        taken_down = (-signal.SIGKILL, -signal.SIGABRT) if waited else ()
        return [
            event
            for event in exits
            if event.data["code"] not in taken_down and not self._ended_well_after(event) and not self._outlived(event)
        ]

    @cached_property
    def _endings(self) -> dict[int, Exit]:
        """How each rank ended; the first word of it counts, and the first that tells the time."""
        found: dict[int, Exit] = {}
        for event in self._exits:
            if event.rank is not None:
                at, by = event.data.get("at"), str(event.data.get("by") or "")
                known = found.get(event.rank)
                found[event.rank] = (
                    Exit(int(event.data["code"]), at, by) if known is None else replace(known, at=known.at or at)
                )
        return found

    def is_kill_by_launcher(self, event: Event) -> bool:
        """A line on the SIGKILL of a rank that the launcher itself ended."""
        return event.rank in killed_by_launcher(self._endings) and _KILL.search(event.text) is not None

    @cached_property
    def was_interrupted(self) -> bool:
        """The job was ended from outside: a person, a time limit, a supervisor."""
        codes = set(self.exit_codes.values())
        if any(event.kind is EventKind.STACK and event.source == "traceback" for event in self.seen.events):
            return True
        return bool(codes) and codes <= FROM_OUTSIDE | {-signal.SIGKILL}

    @cached_property
    def exceptions(self) -> list[Event]:
        """Python and native exceptions and build errors, without those in which a launcher repeats a rank's failure."""
        raised = [
            event
            for event in self.seen.events
            if event.kind is EventKind.EXCEPTION
            and not _WRAPPERS.search(str(event.data.get("headline", event.text))[:200])
        ]
        return without_teardown(raised, self.seen.events)

    @cached_property
    def was_spawned(self) -> bool:
        """A parent that had started the ranks by `spawn` raised what the first of them to fail had raised."""
        told = (str(event.data.get("headline", event.text)) for event in self.seen.events)
        return any("ProcessRaisedException" in text[:200] for text in told)

    @cached_property
    def places(self) -> dict[int, str]:
        """The line of the user's code at which each rank was last seen to fail or to be interrupted."""
        return {rank: frames[-1].place for rank, frames in self.stacks.items()}

    @cached_property
    def stacks(self) -> dict[int, tuple[Frame, ...]]:
        """By rank the frames of the user's own code, the outermost first, where it was last seen to fail or to be interrupted."""
        found: dict[int, tuple[Frame, ...]] = {}
        for event in self.seen.events:
            own = tuple(frame for frame in event.frames if frame.is_user_code)
            if event.kind in (EventKind.EXCEPTION, EventKind.STACK) and event.rank is not None and own:
                found[event.rank] = own
        return found

    def _ended_well_after(self, event: Event) -> bool:
        """The job says further down that it is done, and nobody died after that: it was restarted, or got over it."""
        file = self.file_of(event)
        if file is None or event.source in _RECORDS:
            return False
        end = max((entry.finished or 0 for entry in file.ranks.values()), default=0)
        deaths = (other for other in self.seen.events if other.kind is EventKind.EXIT and other.data["code"] != 0)
        return end > event.line and not any(other.file != event.file or other.line > end for other in deaths)

    def _outlived(self, event: Event) -> bool:
        """Other ranks trained on for steps after this death was told: an elastic job got over it."""
        file = self.file_of(event)
        if file is None or event.source in _RECORDS:
            return False
        others = [entry for rank, entry in file.ranks.items() if rank is not None and rank != event.rank]
        last = event.line
        if (teller := file.ranks.get(None)) is not None:  # one rank tells for all: then nobody must have died after it
            others.append(teller)
            last = max((death.line for death in self._deaths.get(event.file, ())), default=event.line)
        return any(
            len(one.recent_progress) >= _STEPS
            and one.recent_progress[-_STEPS] > (last if one is teller else event.line)
            for one in others
        )

    @cached_property
    def _deaths(self) -> dict[str, list[Event]]:
        """By file, the ends with an error that it tells of."""
        found: dict[str, list[Event]] = {}
        for event in self.seen.events:
            if event.kind is EventKind.EXIT and event.data["code"] != 0:
                found.setdefault(event.file, []).append(event)
        return found

    def _was_restarted_after(self, event: Event) -> bool:
        """The job got over the deaths that were told after this: it was started again, and trained on."""
        later = [death for death in self._deaths.get(event.file, ()) if death.line > event.line]
        return bool(later) and all(self._outlived(death) for death in later)

    def _wait_ended(self, event: Event, file: FileSurvey) -> bool:
        """The rank that told of the wait speaks again of ordinary things. Others' lines may have been held back in a buffer."""
        if event.rank is None:
            return any(entry.last_moving > event.line for entry in file.ranks.values())
        entry = file.ranks.get(event.rank)
        missing = set(event.data.get("missing", ())) or self._missing_at(event)
        return entry is not None and event.rank not in missing and entry.last_ordinary > event.line

    def _missing_at(self, event: Event) -> set[int]:
        """Whom the stall report that this line belongs to names."""
        near = [
            other
            for other in self.seen.events
            if other.kind is EventKind.STALL and other.file == event.file and abs(other.line - event.line) <= _NEAR
        ]
        return {int(rank) for other in near for rank in other.data.get("missing", ())}

    @cached_property
    def _console_of_recovery(self) -> str | None:
        """The log of all ranks that says that the job is done, where nobody's death is left unrecovered: it stands for the job."""
        shared = [
            file for file in self.seen.files if file.rank is None and any(one.finished for one in file.ranks.values())
        ]
        failed = any(event.kind is EventKind.EXIT and event.data["code"] != 0 for event in self.seen.events)
        return shared[0].name if failed and not any(self.exit_codes.values()) and len(shared) == 1 else None

    def went_on_after(self, event: Event) -> bool:
        """The rank trained on, or ended well, after this event; or the job did, started again."""
        if self._console_of_recovery is not None and event.file != self._console_of_recovery:
            return True
        if self.is_clean or (event.rank is None and self._ended_well_after(event)):
            return True
        if event.source == "watch":
            later = (one for one in self.seen.events if one.source == "watch" and one.line > event.line)
            return any(one.data["seen"] == "recovered" for one in later)
        file = self.file_of(event)
        if file is None or event.source in _RECORDS:
            return False
        if event.data.get("is_ignored") or is_harmless(event, file, self) or self._was_restarted_after(event):
            return True
        if (missed := is_missed(event, file, self)) is not None:
            return not missed
        if (event.kind is EventKind.STALL or _WAITING.search(event.text)) and self._wait_ended(event, file):
            return True
        return (
            self._somebody_went_on(event, file) if event.rank is None else self._rank_went_on(event, event.rank, file)
        )

    def _somebody_went_on(self, event: Event, file: FileSurvey) -> bool:
        """Whose line it is, is not known: then somebody must have trained on after the last exception of all."""
        if self.own_deaths or any(self.exit_codes.values()):
            return False
        last = max(self._repeats.first_of(event), self._repeats.last_in(event.file))
        return any(_later(entry.last_progress, entry.finished, last) for entry in file.ranks.values())

    def _rank_went_on(self, event: Event, rank: int, file: FileSurvey) -> bool:
        entry = file.ranks.get(rank)
        if entry is None or self.exit_codes.get(rank, 0) != 0:
            return False
        line = self._repeats.first_of(event)
        if _later(entry.last_progress, entry.finished, line) or self._is_caught_elsewhere(event, file):
            return True
        if entry.last_connected > event.line and WARNING.search(event.text[:300]):
            return True  # it could not reach its peers at first
        if (line < event.line or entry.last_ordinary > event.line) and self._ended_well_after(event):
            return True  # it raised that before or spoke on, and another rank tells for all that they are done
        return self._others_trained_on(event, file, entry)

    def _is_caught_elsewhere(self, event: Event, file: FileSurvey) -> bool:
        """Another rank raised the same at the same line and trained on, in a job without a death: the program catches it."""
        twins = ((twin.line, file.ranks.get(twin.rank)) for twin in self._repeats.twins_of(event))
        went_on = any(one is not None and _later(one.last_progress, one.finished, line) for line, one in twins)
        return went_on and not self.own_deaths and not any(self.exit_codes.values())

    def _others_trained_on(self, event: Event, file: FileSurvey, entry: RankSurvey) -> bool:
        """A line, no exception, of a rank that never tells of its training, in a job that trains on and in which nobody failed:
        lines of progress are then printed by one rank for all, without its number."""
        teller = file.ranks.get(None)
        if event.kind is not EventKind.LINE or entry.last_progress is not None or teller is None:
            return False
        return not self.exceptions and not self.own_deaths and sum(n > event.line for n in teller.recent_progress) > 1

    @cached_property
    def _repeats(self) -> Repeats:
        return Repeats(self.exceptions)


def _later(progress: int | None, finished: int | None, line: int) -> bool:
    return (progress or 0) > line or (finished or 0) > line
