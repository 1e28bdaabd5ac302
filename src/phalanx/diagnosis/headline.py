"""Writes the first line of a verdict: who did what, where, as one engineer would send it to another."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping

from phalanx.diagnosis.claim import Claim
from phalanx.diagnosis.history import History
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Event, EventKind, Frame
from phalanx.model.ranks import name_ranks
from phalanx.model.template import fill, is_complete
from phalanx.sources.readers.tracebacks import TRUNCATED

_LONGEST_MESSAGE = 160
_MOST_NAMES = 3  # of keys in a list
_MOST_NAMED = 8  # ranks that are named one by one; more are counted
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"])")
_NAMES_A_RANK = re.compile(r"\branks? \d", re.I)
_PLAIN_OPENING = re.compile(r"(?:A|An|The|Some|Two|Several|Not all)\b")
_INSIDE = frozenset(("<listcomp>", "<genexpr>", "<lambda>", "<dictcomp>", "<setcomp>", "<module>"))
_BAR = re.compile(r"\s*\d+%\|.*")  # a progress bar that was left behind the message
_SIGNALS_FROM = 128  # a shell's way to tell a signal


def values_of(claim: Claim, history: History) -> dict[str, str]:
    """What every text of a rule may name besides the captures of its evidence."""
    printers, accused, world = claim.printers, claim.culprits, history.world.all_ranks
    waiting = (printers - accused if claim.is_about_others else frozenset()) or claim.victims - accused
    captured = claim.captures
    values = {
        "who": name_or_count(accused or printers, world),
        "others": name_or_count(waiting, world),
        "culprit_at": _common_place(accused, history),
        "others_at": _common_place(waiting, history),
        "culprit_end": _how_ended(accused, history),
        "waited": _duration(captured),
        "crashed_in": _crashed_in(claim),
        "unnamed": "" if accused else name_or_count(waiting, world),
    }
    values |= {name: _listed(text) if name.endswith("_keys") else text for name, text in captured.items()}
    return values | {
        "ranks": name_ranks(printers),
        "culprits": name_ranks(accused),
        "victims": name_ranks(waiting),
        "where": frame.place if (frame := frame_of(claim)) else "",
        **_ends(claim),
    }


def _ends(claim: Claim) -> dict[str, str]:
    """The hosts that report it, and both ends of the connection where two are known."""
    own = sorted({proof.event.host for proof in claim.roots if proof.event.host})
    peers = [proof.captures["peer"] for proof in claim.roots if "peer" in proof.captures]
    ends = list(dict.fromkeys([*own, *peers]))
    return {"own_hosts": ", ".join(own), "path_ends": " and ".join(ends) if len(ends) == 2 else ""}


def _common_place(ranks: frozenset[int], history: History) -> str:
    """Where in the user's code all of these ranks were, as far as it is known and the same."""
    places = {history.places[rank] for rank in ranks if rank in history.places}
    return places.pop() if len(places) == 1 else ""


def _how_ended(ranks: frozenset[int], history: History) -> str:
    """How the accused ended, if by themselves and all alike."""
    codes = {history.exit_codes.get(rank) for rank in ranks}
    code = codes.pop() if len(codes) == 1 else None
    return ended_with(code) if code is not None and code != -signal.SIGTERM else ""


def _duration(captured: Mapping[str, str]) -> str:
    """How long ranks waited, in the unit that people use."""
    try:
        seconds = float(captured["ms"]) / 1000 if "ms" in captured else float(captured["seconds"])
    except (KeyError, ValueError):
        return ""
    return f"{seconds:g} s"


def _crashed_in(claim: Claim) -> str:
    """The frame that the watch found at a process's death."""
    deaths = (proof.event.data.get("why") for proof in claim.roots if proof.event.kind is EventKind.EXIT)
    return next((str(why["place"]) for why in deaths if isinstance(why, dict) and why.get("place")), "")


def _listed(text: str) -> str:
    """`a.weight and a.bias` from `"a.weight", "a.bias"`; of a long list the beginning and how many more."""
    names = re.findall(r"[\"']([^\"']+)[\"']", text)
    if len(names) > _MOST_NAMES + 1:
        return ", ".join(names[:_MOST_NAMES]) + f" and {len(names) - _MOST_NAMES} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or text


def name_or_count(ranks: frozenset[int], world: frozenset[int]) -> str:
    """`rank 2`, `ranks 0, 1, 3`, `15 ranks`, `all 4 ranks`."""
    if len(ranks) > 1 and ranks >= world:
        return f"all {len(ranks)} ranks" if len(ranks) > 2 else "both ranks"
    return name_ranks(ranks) if len(ranks) <= _MOST_NAMED else f"{len(ranks)} ranks"


def frame_of(claim: Claim) -> Frame | None:
    """The user's line to look at: that of the accused where it is known."""
    accused_first = sorted(claim.roots, key=lambda proof: proof.event.rank not in claim.culprits)
    return next((frame for proof in accused_first if (frame := proof.event.user_frame)), None)


def rule_headline(claim: Claim, values: Mapping[str, str]) -> str:
    """The first of the rule's headlines that the evidence fills; empty if none."""
    templates = claim.rule.headlines if claim.rule is not None else ()
    return next((fill(template, values) for template in templates if is_complete(template, values)), "")


def after_first_sentence(text: str) -> str:
    """A message without the sentence that a headline replaces."""
    return " ".join(_SENTENCE_ENDS.split(text)[1:])


def headline_of(claim: Claim, summary: str, values: Mapping[str, str]) -> str:
    """The rule's own headline where the evidence fills it; else the exception, or the first sentence of the message."""
    if own := rule_headline(claim, values):
        return own
    raised = raised_in(claim)
    is_open = claim.rule is None or (claim.depth is not Claims.CAUSE and not claim.is_about_others)
    if raised is not None and is_open:
        return f"{_capital(values['who'] or 'the script')} {_did(raised)}{_where(raised)}."
    return _from_message(claim, summary, values)


def error_of(event: Event) -> str:
    """`KeyError: 'labels'`: the first line of what was raised, cut to what fits on a line."""
    kind = str(event.data.get("type", "")).rsplit(".", 1)[-1]
    _, _, message = event.text.split("\n", 1)[0].partition(": ")
    message = " ".join(_BAR.sub("", message).split())
    if len(message) > _LONGEST_MESSAGE:
        message = message[: _LONGEST_MESSAGE - 1].rsplit(" ", 1)[0] + " …"
    return f"{kind}: {message}".rstrip(": .") if message else kind


def function_of(event: Event) -> str:
    """What people call the place in the user's code; empty for the script's own level."""
    frames = [frame for frame in event.frames if frame.is_user_code]
    named = next((frame for frame in reversed(frames) if frame.function not in _INSIDE), None)
    if named is None or (frames and named.path != frames[-1].path):
        return ""
    if any("torch/utils/data/" in frame.file and "collate_fn(" in frame.source for frame in event.frames):
        return "your collator"  # whatever its name: the data loader called it to make a batch
    return f"your data set ({named.function})" if named.function == "__getitem__" else named.function


def raised_in(claim: Claim) -> Event | None:
    """The exception of the accused, or of whoever shows it."""
    found = [proof.event for proof in claim.roots if proof.event.kind is EventKind.EXCEPTION and proof.event.data]
    return min(found, key=lambda event: event.rank not in claim.culprits, default=None)


def _did(event: Event) -> str:
    return "failed" if event.data.get("type") == TRUNCATED else f"raised {error_of(event)}"


def _where(event: Event) -> str:
    frame = event.user_frame
    if frame is None:
        return ""
    function = function_of(event)
    return f" in {function} ({frame.place})" if function else f" ({frame.place})"


def _from_message(claim: Claim, summary: str, values: Mapping[str, str]) -> str:
    """The message's first sentence, with the ranks and the place that it leaves out."""
    first = _SENTENCE_ENDS.split(summary, maxsplit=1)[0]
    place = values["where"]
    if place and place.split(":")[0] not in first:
        end = first[-1] if first[-1:] in ".?!" else ""
        first = f"{first.removesuffix(end)} ({place}){end or '.'}"
    is_own = claim.blame is Blame.PRINTER and not claim.is_about_others
    if values["who"] and (claim.culprits or is_own) and not _NAMES_A_RANK.search(first):
        opening = first[0].lower() + first[1:] if _PLAIN_OPENING.match(first) else first
        return f"{_capital(values['who'])}: {opening}"
    return first


def ended_with(code: int) -> str:
    """`was killed by SIGKILL`, `exited with status 3`."""
    number = -code if code < 0 else code - _SIGNALS_FROM if code > _SIGNALS_FROM else 0
    if number in signal.valid_signals():
        return f"was killed by {signal.Signals(number).name}"
    return f"exited with status {code}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
