"""Where the numbers stand in entries of a flight-recorder dump, one entry or a run of them, and how to take them out at once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from struct import Struct
from typing import Any

from phalanx.sources.traces.opcodes import Walked
from phalanx.sources.traces.protocol import NO_NUMBER, ROW_NUMBERS

SLOTS = {
    b"record_id": "order",
    b"collective_seq_id": "collective",
    b"p2p_seq_id": "pairwise",
    b"time_created_ns": "created_ns",
    b"time_discovered_started_ns": "started_ns",
    b"time_discovered_completed_ns": "completed_ns",
}
UNUSED = frozenset({b"op_id", b"duration_ms"})  # they differ from call to call, and nothing is made of them
# A call is counted as one of a group's collectives or as one between two ranks; of the other count nothing is made.
IS_PAIRWISE = b"is_p2p"
_OTHER_COUNT = {b"\x88": b"collective_seq_id", b"\x89": b"p2p_seq_id"}
# The form of a number, its bytes, and those of its opcode.
_NUMBERS = {b"K": ("B", 1, 1), b"M": ("H", 2, 1), b"J": ("i", 4, 1), b"\x8a": ("q", 8, 2), b"G": ("", 8, 1)}
Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A number within an entry: how many bytes stand before it, its form (empty: unused), its bytes and its place in a row."""

    gap: int
    letter: str
    size: int
    slot: str


@dataclass(frozen=True, slots=True)
class Layout:
    """An entry, after the bytes that open it and before the one that ends it: its numbers, and the bytes behind the last."""

    numbers: tuple[Number, ...]
    rest: int

    @property
    def varies(self) -> frozenset[str]:
        """The ROW_NUMBERS that it has."""
        return frozenset(number.slot for number in self.numbers if number.letter)

    @property
    def untaken(self) -> Layout:
        """The same, its numbers passed over: they stay in the entry."""
        return Layout(tuple(replace(number, letter="") for number in self.numbers), self.rest)


@dataclass(frozen=True, slots=True)
class Once:
    """An entry that numbers strings, and so comes once in a dump: the numbers from first to last, and how many fields it has."""

    first: int
    last: int
    fields: int
    layout: Layout


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of a run's entries, and each of them once, in the order in which they come first."""

    every: array[int]
    distinct: tuple[int, ...]

    @staticmethod
    def of(every: Sequence[int]) -> Kinds:
        """The kinds in the order of the entries."""
        return Kinds(array("q", every), tuple(dict.fromkeys(every)))


@dataclass(slots=True)
class Form:
    """Entries of one layout, or runs of them: how to take them apart, and the kinds of those that were seen, by the other bytes."""

    taken: Callable[[bytes], Values]
    mask: int
    columns: tuple[Callable[[Values], bytes], ...]  # of a run: for each of ROW_NUMBERS, of the values and NO_NUMBER
    row: Callable[[Values], Values]  # of one entry's values, NO_NUMBER and the kind
    kinds: dict[int, Kinds] = field(default_factory=dict)
    once: dict[int, Once] = field(default_factory=dict)
    openings: dict[int, list[int | Once]] = field(default_factory=dict)  # runs with such entries in them

    def rest(self, data: bytes) -> int:
        """All bytes but those of numbers, as one number: to compare many bytes of which some do not count, nothing is faster."""
        return int.from_bytes(data, "little") & self.mask


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of entry: one example whole, how many fields it has, and its layout."""

    entry: bytes
    fields: int
    layout: Layout


@dataclass(slots=True)
class Vocabulary:
    """What was learned from dumps that number the names of fields alike."""

    kinds: list[Kind] = field(default_factory=list)
    forms: dict[tuple[Layout, ...], Form] = field(default_factory=dict)
    by_hint: dict[tuple[int, int], list[Form]] = field(default_factory=dict)
    runs: dict[tuple[int, ...], list[Form]] = field(default_factory=dict)

    def form(self, layouts: tuple[Layout, ...], between: int) -> Form:
        """The form of entries of these layouts with so many bytes between them."""
        if layouts not in self.forms:
            self.forms[layouts] = _form(layouts, between)
        return self.forms[layouts]


def layout_of(body: bytes, walked: Walked, before: int) -> Layout:
    """The layout of an entry, whose body begins after `before` bytes."""
    at = 0
    numbers = []
    flag = next(
        (body[start - before : stop - before] for name, start, stop in walked.fields if name == IS_PAIRWISE), b""
    )
    unused = _OTHER_COUNT.get(flag)
    for name, start, stop in ((name, start - before, stop - before) for name, start, stop in walked.fields):
        letter, size, opcode = _NUMBERS.get(body[start : start + 1], ("", 0, 0))
        is_used = name in SLOTS and name != unused
        if start + opcode + size != stop or not (name in UNUSED or (name in SLOTS and letter)):
            continue  # not a number alone: a part of what two such entries must have alike
        numbers.append(Number(start + opcode - at, letter if is_used else "", size, SLOTS.get(name, "")))
        at = stop
    return Layout(tuple(numbers), len(body) - at)


def _form(layouts: Sequence[Layout], between: int) -> Form:
    code, mask, values = ["<"], [], 0
    columns: list[list[int]] = [[] for _ in ROW_NUMBERS]
    for layout in layouts:
        slots: dict[str, int] = {}
        for number in layout.numbers:
            code.append(f"{number.gap}x{number.letter or f'{number.size}x'}")
            mask.append(b"\xff" * number.gap + b"\0" * number.size)
            if number.letter:
                slots[number.slot] = values
                values += 1
        code.append(f"{layout.rest + between}x")
        mask.append(b"\xff" * (layout.rest + between))
        for column, name in zip(columns, ROW_NUMBERS, strict=True):
            column.append(slots.get(name, -1))
    code[-1] = f"{layouts[-1].rest}x"  # nothing comes after the last
    kept = b"".join(mask)
    kept = kept[: len(kept) - between]
    row = itemgetter(*(column[0] if column[0] >= 0 else -2 for column in columns), -1)
    getters = tuple(map(_getter, columns)) if len(layouts) > 1 else ()
    return Form(Struct("".join(code)).unpack, int.from_bytes(kept, "little"), getters, row)


def _getter(column: Sequence[int]) -> Callable[[Values], bytes]:
    """How to take a column out of the values, as the bytes of an array: `struct` packs in a fifth of the time `array` takes."""
    pack = Struct(f"={len(column)}q").pack
    if max(column) < 0:
        constant = pack(*[NO_NUMBER] * len(column))
        return lambda values: constant
    pick = itemgetter(*column)
    return lambda values: pack(*pick(values))


def in_columns(form: Form, values: Values) -> Iterable[bytes]:
    """The ROW_NUMBERS of a run, column by column."""
    values = (*values, NO_NUMBER)
    return (column(values) for column in form.columns)
