"""Which ranks the evidence would show a sign of, so that their silence means something."""

from __future__ import annotations

from phalanx.blame import Coverage
from phalanx.blame.quorum import is_majority
from phalanx.diagnosis.claim import Claim
from phalanx.diagnosis.history import History
from phalanx.model import EventKind
from phalanx.sources.readers.exits import CLOSING
from phalanx.sources.readers.tracebacks import TRUNCATED

_ENDS = (EventKind.TIMEOUT, EventKind.EXCEPTION, EventKind.EXIT)
_HEAD = 5  # lines: a log that begins with the failure was cut out of a longer one
_MOST = 7 / 8  # of the known ranks: an excerpt that has so many of them was not made rank by rank


def coverage_of_absence(history: History) -> Coverage:
    """The ranks that would have left a line if they had waited, too: a supervisor's, those with a file for each, those of one whole log."""
    everyone = history.world.all_ranks
    if history.is_supervised:
        return Coverage(everyone, "the supervisor's record")
    if any(event.kind is EventKind.EXIT and event.source == "record" for event in history.seen.events):
        return Coverage(everyone, "the launcher's record of exits")
    owned = [file for file in history.seen.files if file.rank is not None]
    owners = frozenset(file.rank for file in owned if file.rank is not None and not file.is_partly_read)
    if len(owned) > 1 and not _speaks_for_all(history):
        return Coverage(
            owners & everyone, "a file for each rank"
        )  # a rank without one may just not have been collected
    if history.lacks_lines or history.breaks_off or _is_excerpt(history):
        return Coverage()
    return Coverage(everyone, "the job's log")


def _speaks_for_all(history: History) -> bool:
    """Beside files of single ranks there is a log in which several ranks speak."""
    return any(file.rank is None and sum(rank is not None for rank in file.ranks) > 1 for file in history.seen.files)


def _is_excerpt(history: History) -> bool:
    """One file that begins with the failure and does not say how many ranks there are, with lines of only some of them."""
    if len(history.seen.files) != 1 or history.seen.files[0].world_sizes:
        return False
    told = [event for event in history.seen.events if event.kind in _ENDS or event.source == CLOSING]
    speakers = [rank for rank in history.seen.files[0].ranks if rank is not None]
    begins = min((event.line for event in told), default=_HEAD + 1) <= _HEAD
    return begins and len(speakers) < _MOST * len(history.world.all_ranks) and not _are_summed_up(speakers, history)


def _are_summed_up(speakers: list[int], history: History) -> bool:
    """The launcher's summary at the end lists just those that speak, and they are most of the job."""
    exits = (
        event for event in history.seen.events if event.kind is EventKind.EXIT and event.data.get("at") is not None
    )
    return {event.rank for event in exits} == set(speakers) and is_majority(speakers, history.world.all_ranks)


def coverage_of_words(claim: Claim, history: History) -> Coverage:
    """The ranks that would have said it if they had the same fault. A signal needs no words; those of an exception may be lost."""
    everyone = Coverage(history.world.all_ranks, "the job's log")
    if history.is_supervised:
        return everyone
    exits = [proof.event for proof in claim.roots if proof.event.kind is EventKind.EXIT]
    if len(exits) == len(claim.roots) and all(int(event.data["code"]) < 0 for event in exits):
        return Coverage(history.world.all_ranks, "the launcher's summary")
    is_cut_off = history.breaks_off and all(proof.event.data.get("type") == TRUNCATED for proof in claim.roots)
    if history.lacks_lines or is_cut_off:
        return Coverage()
    if exits or len(history.seen.files) != 1:
        return everyone
    spoke = history.seen.files[0].ranks
    lost = {event.rank for event in history.own_deaths if event.data["code"] == 1 and event.rank not in spoke}
    return Coverage(everyone.ranks - lost, everyone.by)
