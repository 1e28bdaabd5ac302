"""Recognises that a line shows training going on, how far it has come, or that it ended well."""

from __future__ import annotations

import re

_EPOCH = re.compile(r"\bepochs?\b\W{0,3}(\d+)", re.I)
_STEP = re.compile(r"\b(?:global_?step|steps?|iter(?:ation)?s?|it|batch(?:_idx)?)\b\W{0,3}(\d+)", re.I)
_LOSS = re.compile(r"\b\w*loss\b\W{0,4}(?:-?\d+\.?\d*(?:e[+-]?\d+)?|nan|inf)\b", re.I)
_BAR = re.compile(r"\b(\d+)/(?:\d+|Unknown)\s*(?:\[[=>.\s]*\]|━)")  # Keras' bar; tqdm's may be a download
_FINISHED = re.compile(
    r"^\W*(?:[\w.,:-]+\W+){0,4}?(?:training|job|run|fit|all)\b[^.]{0,40}\b(?:finished|completed?|done|succeeded|ended)\b"
    r"|^\W*(?:finished|completed|done)(?: (?:training|epoch|all)\b.*)?[.! ]*$",
    re.I,
)
_END_HINT = re.compile(r"[Ff]inish|[Cc]omplete|[Dd]one|DONE|[Ss]ucceeded|[Ee]nded")
_HINT = re.compile(r"[Ee]poch|EPOCH|[Ss]tep|[Ii]ter|[Ll]oss|[Bb]atch|\\d/\\d|\\bit\\b")  # cheap, asked first
_NOT_PROGRESS = re.compile(r"File \"|Error|Traceback|^\s*#|\bdef \b|=\s*\w+\(", re.I)

Position = tuple[int, int]


def position_of(line: str) -> Position | None:
    """(epoch, step) that a line reports, -1 where it does not say; None if it shows no training."""
    if len(line) > 600 or not _HINT.search(line) or _NOT_PROGRESS.search(line):
        return None
    epoch, step, loss = _EPOCH.search(line), _STEP.search(line), _LOSS.search(line)
    bar = _BAR.search(line)
    if not (bar or loss or (epoch and step) or epoch or step):
        return None
    if not bar and not loss and not re.match(r"\W*(?:\w+\W+){0,6}?(?:epoch|step|iter)", line, re.I):
        return None
    number = step or bar
    return (int(epoch[1]) if epoch else -1, int(number[1]) if number else -1)


def shows_end(line: str) -> bool:
    """True for "training finished" and its like."""
    return len(line) < 200 and _END_HINT.search(line) is not None and _FINISHED.search(line) is not None
