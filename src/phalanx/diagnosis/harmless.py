"""What sounds like trouble and hurt nobody: warnings apart from the training, messages that say what is done instead, leaders that leave first,
peers that are missed when all are through."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phalanx.model import Event, EventKind
from phalanx.sources.survey import FileSurvey

if TYPE_CHECKING:
    from phalanx.diagnosis.history import History

WARNING = re.compile(r"\b[A-Z]\w*Warning: |\bWARN(?:ING)?\b|^\[?W(?:\d{3,4}|\s|\])")
# A message that says itself what is done instead.
_HANDLED = re.compile(
    r"\b(?:skipp(?:ed|ing)|ignor(?:ed|ing)|start(?:ed|ing) (?:fresh|anew|over)|from scratch|f[ae]ll(?:ing)? back|using (?:the )?defaults?|continuing)\b",
    re.I,
)
_TRIES_AGAIN = re.compile(r"\b(?:re-?try(?:ing)?|try(?:ing)? again)\b", re.I)
# What a task of TensorFlow says when the leader, which keeps the coordination service, is gone.
_LEADER_LEFT = re.compile(r"coordination service|CoordinationService|failed to connect to all addresses")


def is_harmless(event: Event, file: FileSurvey, history: History) -> bool:
    """A line of a job in which nobody failed, and after which nothing was missing."""
    if event.kind is not EventKind.LINE or history.exceptions or any(history.exit_codes.values()):
        return False
    return (
        _was_only_warned(event, file, history)
        or _was_handled(event, file)
        or _left_last(event, file, history)
        or _was_told_after_the_end(event, file, history)
    )


def _was_only_warned(event: Event, file: FileSurvey, history: History) -> bool:
    """A warning in a file without any training, of a job that trains in another file: errors and output are often kept
    apart, and then nothing tells their order."""
    if not WARNING.search(event.text[:300]):
        return False
    if any(entry.last_progress is not None for entry in file.ranks.values()):
        return False
    return any(entry.last_progress is not None for one in history.seen.files for entry in one.ranks.values())


def _was_handled(event: Event, file: FileSurvey) -> bool:
    """A line of a rank that trained and speaks on after it, and that tells what it does instead; who tries again must come to other things."""
    own = file.ranks.get(event.rank)
    if own is None or own.last_progress is None or own.last_line <= event.line:
        return False
    if own.last_ordinary > event.line and _TRIES_AGAIN.search(event.text):
        return True
    return _HANDLED.search(event.text) is not None


def _left_last(event: Event, file: FileSurvey, history: History) -> bool:
    """The leader ended before this task did, after all had come equally far: whoever loses it in the middle of a step raises an exception."""
    if not _LEADER_LEFT.search(event.text):
        return False
    entries = [entry for one in history.seen.files for rank, entry in one.ranks.items() if rank is not None]
    trained = [entry for entry in entries if entry.last_progress is not None]
    own = file.ranks.get(event.rank)
    return own in trained and len(trained) > 1 and len({entry.position for entry in trained}) == 1


def _was_told_after_the_end(event: Event, file: FileSurvey, history: History) -> bool:
    """Several ranks, and each of them had said that it is through: who is missed then has left as it should. Or a warning
    after somebody had said that the training is through."""
    ends = [entry.finished for entry in file.ranks.values() if entry.finished is not None]
    if WARNING.search(event.text[:300]) and min(ends, default=event.line) < event.line:
        return True
    own = file.ranks.get(event.rank)
    ranks = history.world.ranks
    has_ended = own is not None and own.finished is not None and own.finished < event.line
    return has_ended and event.rank is not None and len(ranks) > 1 and all(rank.finished for rank in ranks)
