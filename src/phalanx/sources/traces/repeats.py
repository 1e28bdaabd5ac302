"""Reads flight-recorder dumps by what repeats in them: an entry like one before, but for its numbers, is not unpickled again.

In PyTorch's form an entry names its strings and frames by number, so that a call made in every step gives the same bytes
every time but for counts and times. The first of each kind goes through the unpickler; of the others the bytes outside of
these numbers are compared, and the numbers taken from where they stand. What is in another form is left to the unpickler.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pickle import UnpicklingError
from typing import Any

from phalanx.sources.traces.entry_forms import (
    IS_PAIRWISE,
    SLOTS,
    UNUSED,
    Kind,
    Kinds,
    Once,
    Values,
    Vocabulary,
    in_columns,
    layout_of,
)
from phalanx.sources.traces.opcodes import Names, OtherFormError, walk_dictionary
from phalanx.sources.traces.protocol import NO_NUMBER, ROW_NUMBERS, UnreadableError
from phalanx.sources.traces.unpickling import load_plain

_HINT = b"profiling_name"  # where it stands tells most entries of one length apart
_WATCHED = frozenset({*SLOTS, *UNUSED, IS_PAIRWISE, _HINT})
_ENTRIES = re.compile(rb"X\x07\0\0\0entries(?:q.|r.{4})(?=\]\()", re.DOTALL)
_SECOND = re.compile(rb"u(\}\((?:h.|j.{4}))", re.DOTALL)  # all entries but the first refer to their first field's name
_END = re.compile(rb"(?:q.|r.{4})?\.", re.DOTALL)
_MOST_KINDS = 1 << 15  # remembered between dumps
_MOST_RUNS = 1 << 10
_LONGEST_RUN = 128  # entries
_NO_NUMBERS = (NO_NUMBER,) * len(ROW_NUMBERS)
_VOCABULARIES: dict[frozenset[tuple[bytes, bytes]], Vocabulary] = {}


@dataclass(frozen=True, slots=True)
class Repeated:
    """A dump whose `entries` are one of each kind, and for every entry its kind and its numbers."""

    dump: dict[str, Any]
    rows: dict[str, array[int]]  # `kind` and ROW_NUMBERS
    varies: list[frozenset[str]]  # for each kind the ROW_NUMBERS that its rows have


def read_repeated(data: bytes) -> Repeated | None:
    """The dump; None for one that has to go through the unpickler whole, because it is in another form, damaged or hostile."""
    begin = _ENTRIES.search(data)
    second = _SECOND.search(data, begin.end()) if begin else None
    if begin is None or second is None:
        return None
    try:
        return _Reader(second[1]).read(data, begin.end())
    except (
        OtherFormError,
        UnreadableError,
        UnpicklingError,
        EOFError,
        MemoryError,
        LookupError,
        TypeError,
        ValueError,
    ):
        return None


class _Reader:
    """One dump: the kinds found so far, and the bytes that the unpickler will get."""

    def __init__(self, opening: bytes) -> None:
        self._opening = opening
        self._between = b"u" + opening
        self._kept: list[bytes] = []
        self._names = Names(_WATCHED)
        self._fields: list[int] = []
        self._varies: list[frozenset[str]] = []
        self._places: dict[
            int, int
        ] = {}  # the vocabulary's number of a kind -> its place among the kept; < 0: of this dump only
        self._columns: tuple[array[int], ...] = tuple(array("q") for _ in (*ROW_NUMBERS, "kind"))
        self._met: dict[int, Once] = {}  # entries of the run at hand that number strings and were seen in dumps before
        self._most = 0
        self._vocabulary = Vocabulary()
        self._numbered: frozenset[tuple[bytes, bytes]] = frozenset()

    def read(self, data: bytes, start: int) -> Repeated | None:
        """The dump whose list of entries begins at a place."""
        first, *bodies = data.split(self._between)
        if len(first) <= start + 2:
            raise OtherFormError
        self._most = 100 + len(bodies) // 2
        head = walk_dictionary(data[: start + 2] + b"eu", 2, self._names)
        if head.stop != start + 4 or head.fields[-1][1] != start:
            raise OtherFormError
        self._keep_alone(first[start + 2 :] + b"u")
        self._numbered = frozenset(self._names.texts.items())
        if len(_VOCABULARIES) > 256 or any(len(one.kinds) > _MOST_KINDS for one in _VOCABULARIES.values()):
            _VOCABULARIES.clear()
        self._vocabulary = _VOCABULARIES.setdefault(self._numbered, self._vocabulary)
        for run, lengths in _runs(bodies[:-1]):
            self._take_run(run, lengths)
        last = self._opening + bodies[-1]
        tail = last[self._keep_alone(last, to_end=False) :]
        after = walk_dictionary(b"}(" + tail[1:], 0, self._names)
        if tail[:1] != b"e" or not _END.fullmatch(tail, after.stop - 1) or self._is_renumbered():
            raise OtherFormError
        reduced = b"".join([data[: start + 2], *self._kept, tail])
        return self._finish(load_plain(reduced), len(head.fields) + len(after.fields))

    def _take_run(self, bodies: Sequence[bytes], lengths: tuple[int, ...]) -> None:
        """Entries in a row: at once if a dump before, or this one, had such a run, else one by one."""
        joined = self._between.join(bodies)
        forms = self._vocabulary.runs.get(lengths, ())
        for form in forms:
            rest = form.rest(joined)
            kinds = form.kinds.get(rest) or self._opened(form.openings.get(rest), bodies)
            if kinds is not None:
                for kind in kinds.distinct:
                    if kind not in self._places:
                        self._place(kind)
                for column, numbers in zip(self._columns, in_columns(form, form.taken(joined)), strict=False):
                    column.frombytes(numbers)
                self._columns[-1].extend(kinds.every)
                return
        self._met.clear()
        rows = self._take(bodies)
        for column, taken in zip(self._columns, zip(*rows, strict=True), strict=True):
            column.extend(taken)
        met: list[int] = [row[-1] for row in rows]
        self._learn(lengths, joined, [self._met.get(kind, kind) for kind in met])

    def _opened(self, opening: list[int | Once] | None, bodies: Sequence[bytes]) -> Kinds | None:
        """The kinds of a run in which strings are numbered, as many a dump begins: those entries are kept, each for itself."""
        if opening is None or next(one.first for one in opening if isinstance(one, Once)) <= self._names.last:
            return None
        kinds = array("q")
        for one, body in zip(opening, bodies, strict=True):
            if isinstance(one, Once):
                self._names.last = one.last
                one = self._keep(self._opening + body + b"u", one.fields, frozenset())
            elif one not in self._places:
                self._place(one)  # here, since what it refers to is numbered before it
            kinds.append(one)
        return Kinds(kinds, ())

    def _learn(self, lengths: tuple[int, ...], joined: bytes, kinds: list[int | Once]) -> None:
        """Remember a run, unless some of its entries could not come again."""
        words = self._vocabulary
        plain = [kind for kind in kinds if not isinstance(kind, Once)]
        if min(plain, default=0) < 0 or len(words.runs) >= _MOST_RUNS or len(kinds) < 2:
            return
        layouts = (kind.layout.untaken if isinstance(kind, Once) else words.kinds[kind].layout for kind in kinds)
        form = words.form(tuple(layouts), len(self._between))
        if len(form.kinds) + len(form.openings) < _MOST_RUNS:
            if len(plain) == len(kinds):
                form.kinds[form.rest(joined)] = Kinds.of(plain)
            else:
                form.openings[form.rest(joined)] = kinds
            known = words.runs.setdefault(lengths, [])
            if all(one is not form for one in known):
                known.append(form)

    def _take(self, bodies: Sequence[bytes]) -> list[Values]:
        """Rows of entries that come without the bytes that open and end each."""
        hint = next((token for token, text in self._names.texts.items() if text == _HINT), b"")
        known, rows = self._vocabulary.by_hint, []
        for body in bodies:
            place = (len(body), body.find(hint))
            for form in known.get(place, ()):
                kinds = form.kinds.get(form.rest(body))
                if kinds is not None:
                    self._place(kinds.every[0])
                    rows.append(form.row((*form.taken(body), NO_NUMBER, kinds.every[0])))
                    break
            else:
                rows.append(self._meet(body, place))
        return rows

    def _meet(self, body: bytes, place: tuple[int, int]) -> Values:
        """The row of an entry of a new kind."""
        entry = self._opening + body + b"u"
        before = self._names.last
        for form in self._vocabulary.by_hint.get(place, ()):
            once = form.once.get(form.rest(body))
            if once is not None and once.first > before:
                self._names.last = once.last
                number = self._keep(entry, once.fields, frozenset())
                self._met[number] = once
                return (*_NO_NUMBERS, number)
        walked = walk_dictionary(entry, 0, self._names)
        if walked.stop != len(entry) or self._is_renumbered():
            raise OtherFormError
        words = self._vocabulary
        layout = layout_of(body, walked, len(self._opening))
        form = words.form((layout,), 0)
        rest = form.rest(body)
        here = words.by_hint.setdefault(place, [])
        if all(one is not form for one in here):
            here.append(form)
        if walked.first_number is not None:  # a second one like it would number its strings again
            if len(form.once) < _MOST_RUNS:
                form.once[rest] = Once(walked.first_number, self._names.last, len(walked.fields), layout)
            return (*_NO_NUMBERS, self._keep(entry, len(walked.fields), frozenset()))
        if rest not in form.kinds:
            form.kinds[rest] = Kinds.of([len(words.kinds)])
            words.kinds.append(Kind(entry, len(walked.fields), layout))
        kind = form.kinds[rest].every[0]
        self._place(kind)
        return form.row((*form.taken(body), NO_NUMBER, kind))

    def _place(self, number: int) -> None:
        """See that a kind is among those to unpickle. Its example may be another dump's: they differ in numbers only."""
        if number not in self._places:
            kind = self._vocabulary.kinds[number]
            self._keep(kind.entry, kind.fields, kind.layout.varies)
            self._places[number] = len(self._kept) - 1

    def _keep(self, entry: bytes, fields: int, varies: frozenset[str]) -> int:
        """Put an entry among those to unpickle. With too many of them, taking them apart is the longer way."""
        if len(self._kept) > self._most:
            raise OtherFormError
        place = len(self._kept)
        self._kept.append(entry)
        self._fields.append(fields)
        self._varies.append(varies)
        self._places[-1 - place] = place
        return -1 - place

    def _keep_alone(self, entry: bytes, to_end: bool = True) -> int:
        """Take in the first entry or the last one, which has the dump's end behind it; where it ends."""
        walked = walk_dictionary(entry, 0, self._names)
        if to_end and walked.stop != len(entry):
            raise OtherFormError
        number = self._keep(entry[: walked.stop], len(walked.fields), frozenset())
        for column, value in zip(self._columns, (*_NO_NUMBERS, number), strict=True):
            column.append(value)
        return walked.stop

    def _is_renumbered(self) -> bool:
        """Whether a field's name got another number after the first entry: forms of other dumps would not hold."""
        return len(self._names.texts) != len(self._numbered)

    def _finish(self, dump: Any, fields: int) -> Repeated | None:
        """The dump, if the unpickler saw in the bytes what the walk saw: a name that comes twice in a dictionary would differ."""
        entries = dump.get("entries") if type(dump) is dict and len(dump) == fields else None
        if type(entries) is not list or len(entries) != len(self._fields):
            return None
        for entry, length in zip(entries, self._fields, strict=True):
            is_plain = type(entry) is dict and len(entry) == length and type(entry.get("record_id")) is int
            if not is_plain or "seq_id" in entry:  # one count for all calls: dumps of before 2.4
                return None
        rows = dict(zip((*ROW_NUMBERS, "kind"), self._columns, strict=True))
        rows["kind"] = array("q", [self._places[number] for number in rows["kind"]])
        return Repeated(dump, rows, self._varies)


def _runs(bodies: Sequence[bytes]) -> Iterator[tuple[Sequence[bytes], tuple[int, ...]]]:
    """Cut where the same comes round again, so that steps are cut alike: before entries of the rarest length that repeats."""
    lengths = tuple(map(len, bodies))
    for cut in _cuts(lengths):
        yield bodies[cut], lengths[cut]


@lru_cache(maxsize=32)  # many ranks' dumps are alike
def _cuts(lengths: tuple[int, ...]) -> list[slice]:
    rarest = min(((count, length) for length, count in Counter(lengths).items() if count > 2), default=(0, -1))[1]
    cuts = [0, *(place for place, length in enumerate(lengths) if length == rarest and place), len(lengths)]
    return [
        slice(place, min(place + _LONGEST_RUN, stop))
        for start, stop in pairwise(cuts)
        for place in range(start, stop, _LONGEST_RUN)
    ]
