"""Sees at a glance which lines of a large log may hold a needle: by short strings that are rare in that very log.

Looking for thousands of literals costs more than reading them. Each literal is therefore stood for by a key, a part of
it of six bytes that a sample of the log does not hold. Keys are short, so literals share them, and seldom found;
only the lines that hold one are searched for the literals themselves. No literal is without a key, so nothing is lost.
Where keys stand in many lines after all, the log has changed, and they are chosen anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from math import log

import hyperscan

from phalanx.sources.database import Data, Occurrence, compiled, scan, spelt_out
from phalanx.sources.scanner import Needle, NeedleSet, compile_needles
from phalanx.sources.text import LONGEST_LINE

KEY = 6
_LEARN_AFTER = 8 << 20  # bytes; in a smaller log the literals are found sooner than keys are chosen
_SAMPLE, _SAMPLED_AT_ONCE = 96 << 10, 1536
_GOLDEN = 0.618034  # steps of it never fall on the same place
_DENSE = 16  # if lines with keys make up more than one such part of a piece, the keys spare nothing
_LEAST_TELLING = 256 << 10  # bytes; a smaller piece says nothing of what the log is like
_MOST_LEARNT = 6
_FIRST = hyperscan.HS_FLAG_SINGLEMATCH
_RAREST = 10_000  # a pair of bytes seen less often than once in so many is as good as unseen
# A needle of three bytes that no log holds. Hyperscan strides over the bytes where all needles are longer, and then has to
# look twice so often that it is slower by half.
_SHORT = b"\x01\x02\x03"


def parts_of(sample: bytes) -> set[bytes]:
    """All that stands in the sample and is as long as a key, in lower case."""
    low = sample.lower()
    return {low[start : start + KEY] for start in range(len(low) - KEY + 1)}


def choose_keys(literals: Iterable[bytes], sample: bytes, seen: Container[bytes] | None = None) -> set[bytes]:
    """Strings of which every literal holds at least one, and the sample none, where that can be; `seen`: the sample's parts.

    The engine looks closer wherever a few bytes are like those of some key: the rarer the pairs of bytes in the keys, the
    less often. That matters more than few keys do.
    """
    seen = parts_of(sample) if seen is None else seen
    pairs = Counter(zip(sample[::2], sample[1::2], strict=False))  # every second pair tells as much
    weight = {pair: log(1 + 2 * count / max(len(sample), 1) * _RAREST) for pair, count in pairs.items()}
    chosen: set[bytes] = set()
    for literal in sorted(set(literals), key=lambda one: (len(one), one)):  # the short ones have the least choice
        parts = [literal[start : start + KEY] for start in range(max(len(literal) - KEY, 0) + 1)]
        if chosen.isdisjoint(parts):
            weights = [weight.get(pair, 0.0) for pair in pairwise(literal)]
            rare = [
                (sum(weights[at : at + KEY - 1]), part) for at, part in enumerate(parts) if part.lower() not in seen
            ]
            chosen.add(min(rare)[1] if rare else literal)
    return chosen


class GatedNeedles:
    """Finds what the needle set finds, and sooner once enough of a log has been seen."""

    def __init__(self, needles: NeedleSet) -> None:
        self._all = needles
        self._sample = bytearray()
        self._place = 0.0  # where in a piece the sample was last taken from, 0 to 1
        self._unlearnt = 0  # bytes seen without keys
        self._learnt = 0  # times keys were chosen
        self._keys: hyperscan.Database | None = None
        self._common: hyperscan.Database | None = None  # expressions whose literals stand in many lines of this log

    @property
    def is_learnt(self) -> bool:
        """Whether keys are in use."""
        return self._keys is not None

    def scan(
        self, data: Data, stretches: Sequence[tuple[int, int]] | None = None, stop: int | None = None
    ) -> list[Occurrence]:
        """Every occurrence, in order of the offset: of literals before `stop`, of expressions in these stretches, if given."""
        if self._keys is None:
            self._remember(data)
            return self._all.scan(data, stretches, stop)
        stretches = ((0, len(data)),) if stretches is None else stretches
        found: list[Occurrence] = []
        scan(self._keys, data, found, (0, len(data) if stop is None else stop))
        lines = _lines_around(data, sorted(end for end, _ in found))
        if sum(stop - start for start, stop in lines) * _DENSE > len(data):
            self._doubt(data)
            return self._all.scan(data, stretches, stop)
        found = self._search(data, lines, stretches)
        for stretch in stretches:
            scan(self._common, data, found, stretch)
        found.sort()
        return found

    def _search(
        self, data: Data, lines: list[tuple[int, int]], stretches: Sequence[tuple[int, int]]
    ) -> list[Occurrence]:
        """Literals in these lines, and expressions in what of them lies in the stretches."""
        if list(stretches) == [(0, len(data))]:
            return list(_in_lines(data, lines, self._all.scan))
        asked = [(max(a, c), min(b, d)) for a, b in lines for c, d in stretches if a < d and b > c]
        return [
            *_in_lines(data, lines, lambda text: self._all.scan(text, stretches=())),
            *_in_lines(data, asked, lambda text: self._all.scan(text, stop=0)),
        ]

    def _doubt(self, data: Data) -> None:
        """Keys were found all over a piece: choose others, a few times; then do without."""
        if len(data) >= _LEAST_TELLING:
            self._keys = None
            self._sample.clear()
            self._unlearnt = 0
            self._remember(data)

    def _remember(self, data: Data) -> None:
        """Add a little of a piece to the sample; choose keys when enough has been seen to know what is rare."""
        if self._learnt >= _MOST_LEARNT:
            return
        for _ in range(2 + (len(data) >> 17)):  # from all over: heads, middles and tails are unlike one another
            self._place = (self._place + _GOLDEN) % 1
            start = int(self._place * max(len(data) - _SAMPLED_AT_ONCE, 0))
            self._sample += data[start : start + _SAMPLED_AT_ONCE]
        self._sample += data[:_SAMPLED_AT_ONCE]  # of most pieces the head of a file
        self._unlearnt += len(data)
        if self._unlearnt >= _LEARN_AFTER:
            self._learn(bytes(self._sample[-_SAMPLE:]))

    def _learn(self, sample: bytes) -> None:
        lowered = sample.lower()
        is_sampled = cache(lambda text: text.lower().encode() in lowered)
        wanted: tuple[set[bytes], set[bytes]] = (set(), set())  # as they are, and in any case of letters
        once, often = set[bytes](), set[bytes]()  # literals, by how many of their occurrences are wanted
        common: dict[int, Needle] = {}
        for number, needle in enumerate(self._all.needles):
            texts = needle.literals_rare_by(is_sampled)
            literals = {text.encode().lower() if needle.ignores_case else text.encode() for text in texts}
            sampled = lowered if needle.ignores_case else sample
            if needle.is_expression and (not literals or any(literal in sampled for literal in literals)):
                common[number] = needle
            else:
                wanted[needle.ignores_case].update(literals)
                (once if needle.once and not needle.is_expression else often).update(literals)
        seen = parts_of(sample)
        exact, folded = choose_keys(wanted[0], sample, seen), choose_keys(wanted[1], lowered, seen)
        self._keys = _compile_keys(exact, folded, once - often)
        self._common = compile_needles(list(common.values()), list(common))
        self._learnt += 1


def _compile_keys(exact: set[bytes], folded: set[bytes], once: Container[bytes]) -> hyperscan.Database:
    """A database of keys. They are bytes, not text: a key may begin in the middle of a character.

    A literal that the sample is full of is its own key, and no other's if it is longer than a key; of one that is wanted `once`
    in a piece, the first occurrence is enough here too.
    """
    keys = [_SHORT, *sorted(exact), *sorted(folded)]
    flags = [0] * (len(exact) + 1) + [hyperscan.HS_FLAG_CASELESS] * len(folded)
    flags = [flag | _FIRST if len(key) > KEY and key in once else flag for key, flag in zip(keys, flags, strict=True)]
    return compiled([spelt_out(key) for key in keys], range(len(keys)), flags)


def _in_lines(
    data: Data, lines: list[tuple[int, int]], search: Callable[[bytes], Iterable[Occurrence]]
) -> Iterator[Occurrence]:
    """What a search finds in these lines. They are searched as one text: a call for each would take longer."""
    if not lines:
        return
    begins = [0]
    for start, stop in lines:
        begins.append(begins[-1] + stop - start + 1)
    for end, number in search(b"\n".join(data[start:stop] for start, stop in lines)):
        index = bisect_right(begins, end - 1) - 1
        place = lines[index][0] + end - begins[index]
        if place <= lines[index][1]:
            yield place, number


def _lines_around(data: Data, places: Iterable[int]) -> list[tuple[int, int]]:
    """The lines that hold these places, given in order, each once; of an endless line, a stretch around each."""
    lines: list[tuple[int, int]] = []
    done = 0  # what ends here has been seen, and all that can begin before it
    for end in places:
        if end <= done:
            continue
        floor = max(0, end - LONGEST_LINE)
        start = max(data.rfind(b"\n", floor, end - 1) + 1, floor)
        stop = data.find(b"\n", end, end + LONGEST_LINE)
        done = stop if stop >= 0 else end + LONGEST_LINE // 2
        lines.append((start, stop if stop >= 0 else min(len(data), end + LONGEST_LINE)))
    return lines
