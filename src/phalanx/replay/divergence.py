"""The verdict on a replay: did it repeat, and if it parted from the recording, why."""

from __future__ import annotations

import signal
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from phalanx.model.foreign import read_object
from phalanx.replay.changes import Change, changes_between, is_same_stack
from phalanx.replay.command import Command
from phalanx.replay.recordings import Recording, ReplayError, lines_of
from phalanx.replay.rerun import Replayed, Wish, replay_all, replay_rank

_DATA = ("batch", "order", "model-input")


class Verdict(StrEnum):
    """What a replay shows."""

    SAME = "same"  # bit for bit, and nothing failed
    REPEATS = "repeats"  # bit for bit, and it fails again: the fault is in the software
    TRANSIENT = "transient"  # the recorded rank computed something that its code does not compute
    CHANCE = "non-deterministic"
    DATA = "different-data"
    SOFTWARE = "different-software"
    ENDS_OTHERWISE = "ends-otherwise"  # nothing differs, but the rank ended in another way
    INCOMPLETE = "incomplete"  # the recording lacks something that the replay needs
    DIFFERS = "differs"  # not looked into further


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is said at the end."""

    verdict: Verdict
    sentence: str
    ranks: tuple[int, ...]
    replays: tuple[Replayed, ...]
    first: dict[str, Any] | None
    changes: tuple[Change, ...]
    fidelity: str  # bitwise or tolerance
    mode: str

    @property
    def status(self) -> int:
        """0 where the recording was repeated bit for bit."""
        return 0 if self.verdict in (Verdict.SAME, Verdict.REPEATS) else 1

    def to_json(self) -> dict[str, Any]:
        """For machines. Fields are only ever added."""
        return {
            "schema": "phalanx.replay/1",
            "verdict": self.verdict.value,
            "summary": self.sentence,
            "ranks": list(self.ranks),
            "fidelity": self.fidelity,
            "mode": self.mode,
            "first_difference": self.first,
            "changes": [asdict(change) for change in self.changes],
            "replays": [
                {
                    "rank": one.rank,
                    "ended": one.why,
                    "step": one.step,
                    "compared": one.compared,
                    "recorded": one.recorded,
                    "differences": len(one.differences),
                    "exception": one.exception,
                }
                for one in self.replays
            ],
        }


def judge_rank(recording: Recording, rank: int, command: Command, wish: Wish, work: Path, once: bool) -> Judgement:
    """Replay a rank, a second time where it differs, and conclude."""
    if recording.mode == "light":
        raise ReplayError(
            "this recording is light: it has fingerprints and checkpoints but no results of collectives, so a rank cannot run "
            "alone. Replay the whole job with --all, or record with --record=ring or --record=full"
        )
    one = _checked(replay_rank(recording, rank, command, wish, work / "one"))
    changes = changes_between(recording, rank, one.folder, command)
    fidelity = "bitwise" if is_same_stack(recording.ranks[rank], one.folder) else "tolerance"

    def conclude(verdict: Verdict, sentence: str, *replays: Replayed) -> Judgement:
        return Judgement(
            verdict, sentence, (rank,), replays, first_difference(one), tuple(changes), fidelity, recording.mode
        )

    if not one.differences:
        return conclude(*_without_difference(recording, one, changes), one)
    if once:
        return conclude(Verdict.DIFFERS, f"rank {rank} differs from its recording", one)
    again = _checked(
        replay_rank(
            recording,
            rank,
            command,
            Wish(wish.first, wish.last, trusts_objects=wish.trusts_objects, quiet=True),
            work / "two",
        )
    )
    if (parted := _part(one.folder, again.folder)) is not None:
        return conclude(
            Verdict.CHANCE,
            f"the code is not deterministic: two replays of rank {rank} differ from each other, first {parted}",
            one,
            again,
        )
    return conclude(*_with_difference(one, changes), one, again)


def judge_all(recording: Recording, command: Command, wish: Wish, work: Path) -> Judgement:
    """Replay the whole job among real peers and conclude."""
    framework = str(recording.ranks[min(recording.ranks)].get("framework", "torch"))
    if framework != "torch":
        raise ReplayError(
            f"--all works for PyTorch's process groups, not for {framework}: replay one rank, with --rank"
        )
    replays = [_checked(one) for one in replay_all(recording, command, wish, work)]
    changes = changes_between(recording, 0, replays[0].folder, command)
    fidelity = "bitwise" if is_same_stack(recording.ranks[0], replays[0].folder) else "tolerance"
    parted = [one for one in replays if one.differences]
    # A rank that is stopped because its recording ends takes the others with it: what they raise then is no finding.
    stopped = [one for one in replays if one.how in ("recording", "asked", "gap", "other call")]
    raised = [one for one in replays if one.exception and not stopped]
    first = None
    if parted:
        earliest = min(parted, key=_order)
        first = first_difference(earliest)
        verdict = Verdict.SOFTWARE if changes else Verdict.DIFFERS
        ranks = ", ".join(str(one.rank) for one in parted)
        sentence = (
            f"rank{'s' if len(parted) > 1 else ''} {ranks} differ from their recordings, rank {earliest.rank} first"
        )
    elif raised:
        verdict, sentence = _without_difference(recording, raised[0], changes)
    else:
        compared = sum(one.compared for one in replays)
        verdict, sentence = Verdict.SAME, f"all {len(replays)} ranks repeat their recordings: {compared} calls compared"
        if stopped:
            sentence += f"; rank {stopped[0].rank}: {stopped[0].why}"
        if any(one.how == "gap" for one in stopped) or not compared:
            verdict = Verdict.INCOMPLETE
    return Judgement(
        verdict,
        sentence,
        tuple(one.rank for one in parted or replays),
        tuple(replays),
        first,
        tuple(changes),
        fidelity,
        recording.mode,
    )


def _order(one: Replayed) -> tuple[int, int, bool]:
    """Who came first: a rank that handed in something else comes before those that received what came of it."""
    first = first_difference(one) or {}
    return first.get("step", 0), first.get("n", -1), first.get("kind") == "result"


def first_difference(one: Replayed) -> dict[str, Any] | None:
    """The earliest; of those of one step the data's before the collectives'."""
    if not one.differences:
        return None
    return min(one.differences, key=lambda found: (found["step"], found["kind"] not in _DATA, found.get("n", -1)))


def _checked(one: Replayed) -> Replayed:
    if "RefusedObjectError: " in one.exception:
        raise ReplayError(one.exception.rpartition("RefusedObjectError: ")[2].strip())
    return one


def _without_difference(recording: Recording, one: Replayed, changes: list[Change]) -> tuple[Verdict, str]:
    agreed = f"{one.compared} of {one.recorded} recorded calls compared, none differs"
    if stopped := recording.ranks[one.rank].get("stopped"):
        agreed += f" (recording had stopped: {stopped})"
    if one.how == "gap" or not one.compared:
        return Verdict.INCOMPLETE, f"{one.why}; {agreed}"
    if one.how not in ("script", "exception"):
        return Verdict.SAME, f"rank {one.rank} repeats its recording; {agreed}; {one.why}"
    then, now = _recorded_end(recording, one.rank), _end_of(one)
    if now and then in (now, None):
        return (
            Verdict.REPEATS,
            f"rank {one.rank} fails again in the same way, alone ({now}): the fault is in the software or its data; {agreed}",
        )
    if now:
        was = f"failed otherwise ({then})" if then else "did not"
        return (
            Verdict.ENDS_OTHERWISE,
            f"rank {one.rank} fails in the replay ({now}), and {was} in the recording; {agreed}",
        )
    if then and not changes:
        return (
            Verdict.ENDS_OTHERWISE,
            f"rank {one.rank} ends well in the replay, and failed in the recording ({then}); {agreed}",
        )
    if one.calls < one.recorded and not changes:
        return (
            Verdict.ENDS_OTHERWISE,
            f"rank {one.rank} ends after {one.calls} calls in the replay, and made {one.recorded} in the recording; {agreed}",
        )
    return Verdict.SAME, f"rank {one.rank} repeats its recording; {agreed}; {one.why}"


def _end_of(one: Replayed) -> str:
    """How the replayed script failed; empty if it did not."""
    if one.exception:
        return one.exception.strip().splitlines()[-1]
    return f"status {one.status}" if one.status else ""


def _recorded_end(recording: Recording, rank: int) -> str | None:
    """The same of the recorded rank; None where nobody knows, or where others ended it."""
    raised = [line["what"] for line in lines_of(recording.folder(rank)) if line.get("k") == "exception"]
    if raised:
        return str(raised[-1])
    try:
        found = read_object(recording.attempt / f"rank{rank}" / "exit.json")
        code = int(found["code"])
    except (OSError, ValueError, KeyError):
        return None
    if code and found.get("by"):
        return None
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"status {code}" if code else ""


def _with_difference(one: Replayed, changes: list[Change]) -> tuple[Verdict, str]:
    """Two replays agree with each other, and not with the recording."""
    first = first_difference(one) or {}
    if changes:
        listed = "; ".join(change.text for change in changes[:3])
        return Verdict.SOFTWARE, f"not the same software or environment as recorded: {listed}"
    inputs = [found for found in one.differences if found["kind"] in ("call", "input", "result")]
    marked = [found for found in one.differences if found["kind"] in _DATA]
    if marked and (not inputs or min(found["step"] for found in marked) <= min(found["step"] for found in inputs)):
        return Verdict.DATA, f"the data is not what it was: at step {first['step']} {first['what']}"
    if not inputs:  # only random states differ, and nothing came of it yet
        return Verdict.DIFFERS, f"{first['what']}, and nothing that was handed to a collective differs"
    if all(found["kind"] == "result" for found in inputs):
        return Verdict.INCOMPLETE, (
            f"what is kept of a result is not what rank {one.rank} noted when it arrived, first at step {first['step']}: the "
            "recording was damaged"
        )
    if one.how == "other call":
        return Verdict.DIFFERS, f"{one.why}; software and data are the same, as far as can be seen"
    steps = sorted({found["step"] for found in inputs})
    calls = sorted({found["n"] for found in inputs if "n" in found})
    if len(steps) > 1:
        place = f"from step {steps[0]} on, in {len(calls)} calls: what it changed stayed in the rank's memory"
    elif len(calls) > 1:
        place = f"in {len(calls)} calls of step {steps[0]} and nowhere else"
    else:
        place = f"in one call of step {steps[0] if steps else first.get('step')} and nowhere else"
    return Verdict.TRANSIENT, (
        f"rank {one.rank} computed something in the recorded run that its code does not compute, {place}; software and data are the "
        "same and two replays agree: memory or hardware of its host, or a race"
    )


def _part(one: Path, other: Path) -> str | None:
    """Where two replays differ from each other, in words; None if they do not."""
    mine, yours = _compared(one), _compared(other)
    for left, right in zip(mine, yours, strict=False):
        for name in ("k", "op", "g", "q", "in", "mark", "random"):
            if left.get(name) != right.get(name):
                what = f"{left['op'].strip('_')} at {left.get('line')}" if "op" in left else left.get("k", "")
                return f"at step {left.get('s')}: {what}"
    if len(mine) != len(yours):
        longer = max(mine, yours, key=len)[min(len(mine), len(yours))]
        return f"at step {longer.get('s')}: one of them ended there"
    return None


def _compared(folder: Path) -> list[dict[str, Any]]:
    return [line for line in lines_of(folder) if line.get("k") in ("call", "step", *_DATA)]
