"""The numbers that lines of progress report (loss, accuracy, learning rate, times, throughput, memory), kept by rank."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from phalanx.model.lazy import lazy
from phalanx.sources.progress import Position

_NUMBER = r"(?P<value>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w%])"
_LOSS = r"(?P<value>-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|inf))(?![\w%])"
_PLAIN = r"(?P<value>\d+(?:\.\d+)?)"
_GAP = r"['\"]?\s*[:=|(\[]{0,2}\s*"
_PER_SECOND = r"(?:samples?|images?|imgs?|tokens?|examples?|sequences?|seqs?|steps?|it|iters?|batches|records|words|frames)\s*(?:/\s*s(?:ec(?:ond)?)?\b|_per_sec\w*| per sec\w*)"
_OF_WHAT = r"(?:(?:train(?:ing)?|val(?:id(?:ation)?)?|test|eval)[ _/-])?"
# Lines are looked at in lower case. Losses of validation, of parts of a model and of two players tell nothing of training.
# Of each kind: a hint that stands in every match, and how far before the hint a match may begin. Lines are long, and most of them is passed over.
_KINDS: tuple[tuple[str, str, int, re.Pattern[str]], ...] = (
    ("loss", "loss", 10, lazy(rf"(?<![\w/-])(?:(?:train(?:ing)?|total|lm|running|avg|average|mean|batch|epoch|step|global|reduced)[ _/])?loss\b{_GAP}{_LOSS}")),
    ("local loss", "loss", 12, lazy(rf"(?<![\w/-])(?:local|own|per[ _-]rank)[ _/-]loss\b{_GAP}{_LOSS}")),
    ("reduced loss", "loss", 14, lazy(rf"(?<![\w/-])(?:global|(?:all[ _-]?)?reduced|total|summed|overall|world)[ _/-]loss\b{_GAP}{_LOSS}")),
    ("accuracy", "acc", 12, lazy(rf"(?<![\w/-]){_OF_WHAT}acc(?:uracy)?\b{_GAP}{_PLAIN}(?P<percent>\s?%)?(?![\w.])")),
    ("rate", "sec", 48, lazy(rf"{_PER_SECOND}{_GAP}{_NUMBER}|(?P<before>\d+(?:\.\d+)?)\s*{_PER_SECOND}(?!\s?[:=]\s?\d)")),
    ("rate", "/s", 48, lazy(rf"(?P<before>\d+(?:\.\d+)?)\s*{_PER_SECOND}")),
    ("seconds", "took", 0, lazy(rf"\btook{_GAP}{_PLAIN}(?=\s*s)")),
    ("seconds", "_ms", 12, lazy(rf"\b(?:step|iter(?:ation)?|batch|epoch)_ms\b{_GAP}{_PLAIN}")),
    ("seconds", "time", 12, lazy(rf"\b(?:(?:step|iter(?:ation)?|epoch|batch)[ _]time|time per (?:step|iteration|batch|epoch))\b(?:\s*\(m?s\))?{_GAP}{_PLAIN}")),
    ("seconds", "s/", 48, lazy(r"(?P<before>\d+(?:\.\d+)?)\s*(?:m?s|sec)/(?:step|it|iter|batch|epoch)\b")),
    ("seconds", "s)", 16, lazy(r"\(\s?(?P<before>\d{1,6}\.\d{1,6})\s?s\)")),
    ("data seconds", "data", 0, lazy(rf"\bdata(?:[ _]?load(?:ing|er)?)?[ _]?(?:time|wait|sec(?:ond)?s|s|ms)?\b(?:\s*\(m?s\))?{_GAP}{_PLAIN}(?=\s*m?s\b|[,;\s}}|]|$)")),
    ("compute seconds", "fwd", 0, lazy(rf"\b(?:fwd|forward)[ _/+&]*(?:bwd|backward)?[ _]?(?:time|sec(?:ond)?s|s|ms)?\b{_GAP}{_PLAIN}(?=\s*m?s\b|[,;\s}}|]|$)")),
    ("compute seconds", "forward", 0, lazy(rf"\b(?:fwd|forward)[ _/+&]*(?:bwd|backward)?[ _]?(?:time|sec(?:ond)?s|s|ms)?\b{_GAP}{_PLAIN}(?=\s*m?s\b|[,;\s}}|]|$)")),
    ("compute seconds", "compute", 0, lazy(rf"\bcompute[ _]?(?:time|sec(?:ond)?s|s|ms)?\b{_GAP}{_PLAIN}(?=\s*m?s\b|[,;\s}}|]|$)")),
    ("memory", "rss", 0, lazy(rf"\brss(?:_[mg]i?b)?\b{_GAP}{_PLAIN}")),
    ("memory", "mem", 10, lazy(rf"\b(?:(?:host|cpu|gpu|cuda|process|used)[ _])?mem(?:ory)?(?:[ _](?:used|usage|allocated|[mg]i?b))*\b{_GAP}{_PLAIN}")),
    ("learning rate", "lr", 0, lazy(rf"\blr\b{_GAP}{_NUMBER}")),
    ("learning rate", "learning", 0, lazy(rf"\blearning[ _]rate\b{_GAP}{_NUMBER}")),
    ("gradient norm", "norm", 12, lazy(rf"\b(?:grad(?:ient)?s?[ _]norm|gnorm)\b{_GAP}{_NUMBER}")),
)  # fmt: skip
# A number, and what its author says it should be: `grad_norm 0.49 expected 0.24`, `loss 0.18, loss of one device on the same batch 0.09`.
_AS_EXPECTED = lazy(
    r"(?<![\w.])(?P<own>\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w%./:])[^\d]{1,30}?"
    r"\b(?:expected|should be|ideal(?:ly)?|(?:one|single)[ -](?:device|gpu|process|worker|rank)|reference)\b"
    r"(?! (?:time|end|finish|eta|remaining|duration|in\b|improvement))[^\d]{0,40}?(?P<meant>\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w%./:])"
)
_MEANT = ("expected", "should be", "ideal", "one device", "single", "one gpu", "one process", "reference")
_NOT_TRAINING = lazy(r"\b(?:val(?:id(?:ation)?)?|eval(?:uation)?|test(?:ing)?|dev)\b")
_SHOWN = 200  # characters of a line that are kept with a reading
_KEPT = 300  # readings of one kind: this many of the first, and of the last


class Number(NamedTuple):
    """Where in a line a number of some kind stands."""

    kind: str
    start: int
    stop: int
    is_percent: bool = False


def numbers_in(low: str) -> tuple[Number, ...]:
    """The numbers that a line of progress, in lower case, reports of training: the first of each kind."""
    if _NOT_TRAINING.search(low[:40]):
        return ()
    found: dict[str, Number] = {}
    for kind, hint, reach, pattern in _KINDS:
        place = low.find(hint)
        if place < 0 or kind in found:
            continue
        if (match := pattern.search(low, max(place - reach, 0))) is not None:
            groups = match.groupdict()
            start, stop = match.span("value" if groups.get("value") else "before")
            found[kind] = Number(kind, start, stop, bool(groups.get("percent")))
    if any(hint in low for hint in _MEANT) and (match := _AS_EXPECTED.search(low)) is not None:
        found["own"], found["meant"] = Number("own", *match.span("own")), Number("meant", *match.span("meant"))
    return tuple(found.values())


class Reading(NamedTuple):
    """One number as it was printed, and where."""

    line: int
    at: Position
    printed: str
    text: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.printed)


@dataclass(slots=True)
class Metrics:
    """The readings of one rank in one file, by kind."""

    _first: dict[str, list[Reading]] = field(default_factory=lambda: defaultdict(list))
    _last: dict[str, deque[Reading]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=_KEPT)))

    def take(self, line: int, at: Position, text: str, numbers: Sequence[Number] | None = None) -> None:
        """Add what a line of progress reports; `numbers`: where it does, if that is known."""
        low = text.lower()
        shown = text[:_SHOWN]
        for kind, start, stop, is_percent in numbers_in(low) if numbers is None else numbers:
            printed = low[start:stop]
            if is_percent:
                printed = str(float(printed) / 100)
            first = self._first[kind]
            (first if len(first) < _KEPT else self._last[kind]).append(Reading(line, at, printed, shown))

    def of(self, kind: str) -> list[Reading]:
        """All readings of a kind, in order."""
        return [*self._first.get(kind, ()), *self._last.get(kind, ())]
