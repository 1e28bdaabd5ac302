"""Where a rank's own words are missing: exits without a reason, exceptions cut off before they are named, crashes of nobody known."""

from __future__ import annotations

import re
import signal

from phalanx.diagnosis.claim import Claim
from phalanx.diagnosis.history import History
from phalanx.diagnosis.stack_state import WAITS
from phalanx.model import Event

_CRASH_CODES = {-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}
_REFUSALS = (1, 2)  # an exception, or an argument that a parser does not take
_OF_LAUNCHERS = re.compile(
    r"^\s|torch/distributed|^Traceback|^[=*-]{3,}|^\w[\w.]*Error\b|FAILED$|^Failures:|^Root Cause|^\[\d+\]:|^<NO_OTHER|\*{6,}|^[WIE]\d{4} "
)


def are_words_missing(claim: Claim, history: History) -> bool:
    """Of a claim that rests on exits alone: ranks ended with the status of an exception or of a refused argument, whose words are not there.

    Several of them: victims end so, too. One of a job that had not trained, in which something was said by nobody known: what
    a script refuses it refuses on all ranks, and the launcher ends the others while they are about to. Any of a log that
    is not whole.
    """
    if not all(proof.event.data["code"] in _REFUSALS for proof in claim.roots):
        return False
    others = [code for rank, code in history.exit_codes.items() if rank not in claim.printers]
    is_first = not history.has_trained and bool(others) and all(code == -signal.SIGTERM for code in others)
    return (is_first and _has_unattributed_output(history)) or len(claim.printers) > 1 or history.lacks_lines


def _has_unattributed_output(history: History) -> bool:
    """Lines that no rank is named for, and that are not the launcher's own."""
    speakers = (file.ranks.get(None) for file in history.seen.files)
    return any(
        not _OF_LAUNCHERS.search(text) for speaker in speakers if speaker is not None for _, text in speaker.opening
    )


def crashed_ranks(history: History) -> frozenset[int]:
    """Ranks that ended by a signal that a process brings on itself."""
    return frozenset(
        event.rank for event in history.own_deaths if event.rank is not None and event.data["code"] in _CRASH_CODES
    )


def may_be_the_same(cut: Event, claim: Claim) -> bool:
    """Whether an exception that is cut off before it is named may be the claim's own. Who was within an exchange between ranks, at
    another line than the claim's ranks, had lost them."""
    places = {proof.event.user_frame.place for proof in claim.roots if proof.event.user_frame is not None}
    own = cut.user_frame
    is_elsewhere = own is not None and bool(places) and own.place not in places
    innermost = cut.frames[-1]
    return not (is_elsewhere and WAITS.search(f"{innermost.function} {innermost.source}"))
