"""Recognises that a line shows training going on, how far it has come, or that it ended well."""

from __future__ import annotations

import re

# These three are looked for in lower case: expressions that ignore case are slow.
_EPOCH = re.compile(r"\bepochs?\b\W{0,3}(\d+)")
_STEP = re.compile(r"\b(?:global_?step|steps?|iter(?:ation)?s?|it|batch(?:_idx)?)\b\W{0,3}(\d+)")
_LOSS = re.compile(r"loss\b\W{0,4}(?:-?\d+\.?\d*(?:e[+-]?\d+)?|nan|inf)\b")
_BAR = re.compile(r"\b(\d+)/(?:\d+|Unknown)\s*(?:\[[=>.\s]*\]|━)")  # Keras' bar; tqdm's may be a download
_WITHIN = re.compile(r"\|\s*(\d+)/\d+ \[|\[(\d+)/\d+")  # tqdm's bar, or `[640/60000`, after an epoch's number
_FINISHED = re.compile(
    # what was taken is not given back (++): a line of commas could be divided in more ways than can be tried
    r"^\W*+(?:\w++(?:[.,:-]++\w++)*+\W++){0,4}?(?:training|job|run|fit|all)\b[^.]{0,40}\b(?:finished|completed?|done|succeeded|ended)\b"
    r"|^\W*(?:finished|completed|done)(?: (?:training|epoch|all)\b.*)?[.! ]*$",
    re.I,
)
# Ordinary output of a living process, where it is not known to be training: bars, rates, anything without trouble in it.
_MOVES = re.compile(
    r"\d+%\|.*\d+/\d+ \[|\b\d[\d.]*\s?(?:it|img|images?|imgs|samples?|tokens?|examples?|steps?)/s(?:ec)?\b"
)
_TROUBLE = re.compile(
    r"error|exception|traceback|fail|fatal|abort|kill|terminat|signal|time[ds]?[- ]?out|stall|wait|missing|shut|warn|hang|stuck|refused"
    r"|0x[0-9a-f]{4}|^file \"|exit|interrupt|\[[wef]\d{4}|\.cc:\d|\.cpp:\d|: \[",
)
_CONNECTED = re.compile(
    r"connected to \d+ peer ranks|Init COMPLETE|successfully connected|All distributed processes registered"
)
_OPENS_WITH_PROGRESS = re.compile(
    r"\W*(?:(?:\d+[-/]\d+[-/]\d+[T _])?\d+:\d+:\d+(?:[.,]\d+)?)?\W*(?:\w+\W+){0,6}?(?:epoch|step|iter)", re.I
)  # behind the time that a logger writes, few words stand before it
# Lines of source, as tracebacks quote them: `model.fit(data, epochs=3)` tells of no epoch.
_CODE = re.compile(r"\bdef \b|=\s*\w+\(|(?:^\s{2,}|\w\.)\w+\([^)]*\b\w+=", re.I)

Position = tuple[int, int]
_MOST_DIGITS = 18
LONGEST = 600  # characters of a line that tells of progress


def may_show_progress(text: str) -> bool:
    """Whether a line, or any of several, holds a word of progress; quick."""
    return (
        "step" in text or "iter" in text or "epoch" in text or "loss" in text or "batch" in text or "Epoch" in text
        or "Step" in text or "Iter" in text or "Loss" in text or "Batch" in text or "EPOCH" in text
    )  # fmt: skip


def may_hold_progress(raw: str) -> bool:
    """Whether progress may show in lines as they were written, which is worth reading them."""
    return may_show_progress(raw) or "\x1b" in raw  # colours may stand in the middle of a word


def position_of(line: str) -> Position | None:
    """(epoch, step) that a line reports, -1 where it does not say; None if it shows no training."""
    found = find_position(line)
    if found is None:
        return None
    epoch, step = found
    return int(epoch[1]) if epoch is not None else -1, int(step[step.lastindex or 1]) if step is not None else -1


def find_position(line: str) -> tuple[re.Match[str] | None, re.Match[str] | None] | None:
    """Where a line reports the epoch and the step, each the last group of its match; None if it shows no training."""
    if len(line) > LONGEST:
        return None
    # Plain words are asked first, here and below: most lines hold none of them.
    if not may_show_progress(line):
        return None
    low = line.lower()
    if 'file "' in low or "error" in low or "traceback" in low:
        return None
    if low.lstrip().startswith("#") or ((("=" in low and "(" in low) or "def " in low) and _CODE.search(line)):
        return None
    epoch = _EPOCH.search(low) if "epoch" in low else None
    step = _STEP.search(low)
    loss = "loss" in low and _LOSS.search(low) is not None
    bar = _BAR.search(line) if "/" in line and ("[" in line or "━" in line) else None
    if not (bar or loss or epoch or step):
        return None
    if not bar and not loss and not _OPENS_WITH_PROGRESS.match(line):
        return None
    number = step or bar
    if number is None and epoch is not None and "/" in line:
        number = _WITHIN.search(line)
    return _if_countable(epoch), _if_countable(number)


def _if_countable(match: re.Match[str] | None) -> re.Match[str] | None:
    """The match, unless it is of a number that no job counts up to."""
    return match if match is not None and len(match[match.lastindex or 1]) <= _MOST_DIGITS else None


def shows_end(line: str) -> bool:
    """True for "training finished" and its like."""
    if len(line) >= 200:
        return False
    hinted = (
        "inish" in line or "omplete" in line or "one" in line or "DONE" in line or "nded" in line or "eeded" in line
    )
    return hinted and _FINISHED.search(line) is not None


def shows_movement(line: str) -> bool:
    """True for a bar or a rate: something is being worked off, be it training or not."""
    return ("/s" in line or "%|" in line) and len(line) < LONGEST and _MOVES.search(line) is not None


def is_ordinary(line: str) -> bool:
    """True for output of a living process that speaks of no trouble."""
    return bool(line[:1].strip()) and len(line) < LONGEST and _TROUBLE.search(line.lower()) is None


def shows_connection(line: str) -> bool:
    """True where a rank says that it has found its peers."""
    hinted = "onnected" in line or "COMPLETE" in line or "registered" in line
    return hinted and _CONNECTED.search(line) is not None
