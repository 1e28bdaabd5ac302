"""Reads flight-recorder dumps by what repeats in them: an entry like one before, but for its numbers, is not unpickled again.

In PyTorch's form an entry names its strings and frames by number, so that a call made in every step gives the same bytes
every time but for counts and times. The first of each kind goes through the unpickler; of the others the bytes outside of
these numbers are compared, and the numbers taken from where they stand. What is in another form is left to the unpickler.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from pickle import UnpicklingError
from struct import Struct
from typing import Any

from phalanx.sources.traces.opcodes import Names, OtherFormError, Walked, walk_dictionary
from phalanx.sources.traces.protocol import ROW_NUMBERS, UnreadableError
from phalanx.sources.traces.unpickling import load_plain

_SLOTS = {
    b"record_id": "order",
    b"collective_seq_id": "collective",
    b"p2p_seq_id": "pairwise",
    b"time_created_ns": "created_ns",
    b"time_discovered_started_ns": "started_ns",
    b"time_discovered_completed_ns": "completed_ns",
}
_UNUSED = frozenset({b"op_id", b"duration_ms"})  # they differ from call to call, and nothing is made of them
_HINT = b"profiling_name"  # where it stands tells most entries of one length apart
_WATCHED = frozenset({*_SLOTS, *_UNUSED, _HINT})
# The form of a number, its bytes, and those of its opcode.
_NUMBERS = {b"K": ("B", 1, 1), b"M": ("H", 2, 1), b"J": ("i", 4, 1), b"\x8a": ("q", 8, 2), b"G": ("", 8, 1)}
_ENTRIES = re.compile(rb"X\x07\0\0\0entries(?:q.|r.{4})(?=\]\()", re.DOTALL)
_SECOND = re.compile(rb"u(\}\((?:h.|j.{4}))", re.DOTALL)  # all entries but the first refer to their first field's name
_END = re.compile(rb"(?:q.|r.{4})?\.", re.DOTALL)
_MOST_REMEMBERED = 1 << 15  # entries known to be whole, between files
_NO_NUMBERS = (None,) * len(ROW_NUMBERS)
_Row = tuple[int | None, ...]
_Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A dump whose `entries` are one of each kind, and for every entry its kind and its numbers."""

    dump: dict[str, Any]
    rows: dict[str, list[Any]]  # `kind` and ROW_NUMBERS
    varies: list[frozenset[str]]  # for each kind the ROW_NUMBERS that its rows have


@dataclass(slots=True)
class _Form:
    """Entries with their numbers in the same places: how to take them apart, and what was beside numbers in whole ones."""

    taken: Callable[[bytes], _Values]
    rest: Callable[[_Values], Any]
    row: Callable[[_Values], _Row]  # of the values, None and the kind
    varies: frozenset[str]
    fields: int
    seen: set[Any] = field(default_factory=set)


@dataclass(slots=True)
class _Vocabulary:
    """What was learned from dumps that number the names of fields alike."""

    forms: dict[tuple[str, ...], _Form] = field(default_factory=dict)
    by_hint: dict[tuple[int, int], list[_Form]] = field(default_factory=dict)
    remembered: int = 0


_VOCABULARIES: dict[frozenset[tuple[bytes, bytes]], _Vocabulary] = {}


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
        self._kept: list[bytes] = []
        self._names = Names(_WATCHED)
        self._fields: list[int] = []
        self._varies: list[frozenset[str]] = []
        self._rows: list[_Row] = []
        self._most = 0
        self._vocabulary = _Vocabulary()
        self._numbered: frozenset[tuple[bytes, bytes]] = frozenset()
        self._kinds: dict[int, dict[Any, int]] = {}
        self._known: dict[tuple[int, int], list[tuple[_Form, dict[Any, int]]]] = {}

    def read(self, data: bytes, start: int) -> Repeated | None:
        """The dump whose list of entries begins at a place."""
        first, *bodies = data[start + 2 :].split(b"u" + self._opening)
        self._most = 100 + len(bodies) // 2
        head = walk_dictionary(data[: start + 2] + b"eu", 2, self._names)
        if head.stop != start + 4 or head.fields[-1][1] != start:
            raise OtherFormError
        self._keep_alone(first + b"u")
        self._numbered = frozenset(self._names.texts.items())
        if len(_VOCABULARIES) > 256:
            _VOCABULARIES.clear()
        self._vocabulary = _VOCABULARIES.setdefault(self._numbered, self._vocabulary)
        self._take(bodies[:-1])
        last = self._opening + bodies[-1]
        tail = last[self._keep_alone(last, to_end=False) :]
        after = walk_dictionary(b"}(" + tail[1:], 0, self._names)
        if tail[:1] != b"e" or not _END.fullmatch(tail, after.stop - 1) or self._is_renumbered():
            raise OtherFormError
        reduced = b"".join([data[: start + 2], *self._kept, tail])
        return self._finish(load_plain(reduced), len(head.fields) + len(after.fields))

    def _take(self, bodies: list[bytes]) -> None:
        """All entries between the first and the last, without the bytes that open and end each."""
        hint = next((token for token, text in self._names.texts.items() if text == _HINT), b"")
        known, append = self._known, self._rows.append
        for body in bodies:
            place = (len(body), body.find(hint))
            for form, kinds in known.get(place, ()):
                values = form.taken(body)
                kind = kinds.get(form.rest(values))
                if kind is not None:
                    append(form.row((*values, None, kind)))
                    break
            else:
                self._meet(body, place)

    def _meet(self, body: bytes, place: tuple[int, int]) -> None:
        """An entry of a kind that is new in this dump, though perhaps known from others."""
        for form in self._vocabulary.by_hint.get(place, ()):
            values = form.taken(body)
            if form.rest(values) in form.seen:
                return self._add(form, values, body, place)
        entry = self._opening + body + b"u"
        walked = walk_dictionary(entry, 0, self._names)
        if walked.stop != len(entry) or self._is_renumbered():
            raise OtherFormError
        if walked.gives_numbers:  # a second one like it would number its strings again
            self._rows.append((*_NO_NUMBERS, self._keep(entry, len(walked.fields), frozenset())))
            return None
        form = _form_of(self._vocabulary, body, walked, len(self._opening))
        values = form.taken(body)
        if self._vocabulary.remembered < _MOST_REMEMBERED:
            self._vocabulary.remembered += 1
            form.seen.add(form.rest(values))
            forms = self._vocabulary.by_hint.setdefault(place, [])
            if form not in forms:
                forms.append(form)
        return self._add(form, values, body, place)

    def _add(self, form: _Form, values: _Values, body: bytes, place: tuple[int, int]) -> None:
        kinds = self._kinds.setdefault(id(form), {})
        rest = form.rest(values)
        if rest not in kinds:
            kinds[rest] = self._keep(self._opening + body + b"u", form.fields, form.varies)
        here = self._known.setdefault(place, [])
        if all(known is not form for known, _ in here):
            here.append((form, kinds))
        self._rows.append(form.row((*values, None, kinds[rest])))

    def _keep(self, entry: bytes, fields: int, varies: frozenset[str]) -> int:
        """Put an entry among those to unpickle; its kind. With too many of them, taking them apart is the longer way."""
        if len(self._kept) > self._most:
            raise OtherFormError
        self._kept.append(entry)
        self._fields.append(fields)
        self._varies.append(varies)
        return len(self._kept) - 1

    def _keep_alone(self, entry: bytes, to_end: bool = True) -> int:
        """Take in the first entry or the last one, which has the dump's end behind it; where it ends."""
        walked = walk_dictionary(entry, 0, self._names)
        if to_end and walked.stop != len(entry):
            raise OtherFormError
        kind = self._keep(entry[: walked.stop], len(walked.fields), frozenset())
        self._rows.append((*_NO_NUMBERS, kind))
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
        rows = map(list, zip(*self._rows, strict=True))
        return Repeated(dump, dict(zip((*ROW_NUMBERS, "kind"), rows, strict=True)), self._varies)


def _form_of(vocabulary: _Vocabulary, body: bytes, walked: Walked, before: int) -> _Form:
    """The form of an entry, whose body begins after `before` bytes."""
    code, at, values = "<", 0, 0
    rest: list[int] = []
    slots: dict[str, int] = {}
    for name, start, stop in walked.fields:
        start, stop = start - before, stop - before
        letter, size, opcode = _NUMBERS.get(body[start : start + 1], ("", 0, 0))
        begin = start + opcode
        is_slot = name in _SLOTS and letter
        if begin + size != stop or not (is_slot or name in _UNUSED):
            continue  # not a number alone: a part of what two such entries must have alike
        code += f"{begin - at}s" + (letter if is_slot else f"{size}x")
        rest.append(values)
        values += 1
        if is_slot:
            slots[_SLOTS[name]] = values
            values += 1
        at = stop
    code += f"{len(body) - at}s"
    rest.append(values)
    key = (code, *slots)
    if key not in vocabulary.forms:
        row = [slots.get(name, -2) for name in ROW_NUMBERS]
        vocabulary.forms[key] = _Form(
            Struct(code).unpack, itemgetter(*rest), itemgetter(*row, -1), frozenset(slots), len(walked.fields)
        )
    return vocabulary.forms[key]
