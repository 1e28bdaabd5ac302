"""Two recordings of the same job: where they part first, at which rank, step and tensor, and by how much."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from phalanx.replay.inside.phalanx_record.fingerprints import different_ranges
from phalanx.replay.inside.phalanx_record.records import BrokenRecordError, Line, Record, Records
from phalanx.replay.recordings import Recording, ReplayError, damage_is_told

_MOST_VALUES = 1_000_000  # are looked at to say by how much; of more, evenly spread ones
_SIZES = {
    "float32": 4,
    "float64": 8,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "uint8": 1,
    "bool": 1,
    "int8": 1,
    "int16": 2,
}
_LETTERS = {
    "float32": "f",
    "float64": "d",
    "float16": "e",
    "int64": "q",
    "int32": "i",
    "uint8": "B",
    "int8": "b",
    "bool": "?",
    "int16": "h",
}
_CLOSE = 1e-3  # relative; where the number of ranks differs sums are made in another order


@dataclass(frozen=True, slots=True)
class Parting:
    """The first place at which two runs are not the same."""

    rank: int
    step: int
    what: str  # call, input, result, length
    text: str
    lines: tuple[str, str]
    names: tuple[str, ...] = ()
    largest: float | None = None  # difference, absolute
    relative: float | None = None  # to the largest value
    call: int = 0  # of its rank, from 0

    def order(self) -> tuple[int, int, bool]:
        """By which the first of several is found: who handed in something else comes before those that received what came of it."""
        return self.step, self.call, self.what == "result"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came out."""

    parting: Parting | None
    compared: int
    ranks: tuple[int, ...]
    fidelity: str
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """For machines. Fields are only ever added."""
        return {"schema": "phalanx.compare/1", **asdict(self)}


def compare(one: Recording, other: Recording) -> Comparison:
    """Compare call by call, rank by rank; with different numbers of ranks the results that all members share. Raises ReplayError."""
    with damage_is_told(one.bundle):
        return _compare(one, other)


def _compare(one: Recording, other: Recording) -> Comparison:
    ranks = sorted(one.ranks.keys() & other.ranks.keys())
    if not ranks:
        raise ReplayError("the two recordings have no rank in common")
    same_size = one.size == other.size
    notes = _notes(one, other, ranks)
    left, right = Records(str(one.attempt.resolve())), Records(str(other.attempt.resolve()))
    partings: list[Parting] = []
    compared = 0
    try:
        for rank in ranks if same_size else ranks[:1]:
            found, count = _compare_rank(left, right, rank, same_size)
            compared += count
            partings += [found] if found is not None else []
    except BrokenRecordError as error:
        raise ReplayError(str(error)) from error
    if not compared:
        raise ReplayError("nothing in the two recordings can be compared: no call of one has its like in the other")
    first = min(partings, key=Parting.order) if partings else None
    fidelity = "bitwise" if same_size and not any("stack" in note for note in notes) else "tolerance"
    notes += _cut_short(left, right, ranks if same_size else ranks[:1])
    if first is not None:
        notes += _data(left.of(first.rank), right.of(first.rank), first)
    return Comparison(first, compared, tuple(ranks if same_size else ranks[:1]), fidelity, tuple(notes))


def _compare_rank(left: Records, right: Records, rank: int, same_size: bool) -> tuple[Parting | None, int]:
    mine, yours = left.of(rank), right.of(rank)
    count = 0
    for key, line in sorted(mine.calls.items(), key=lambda item: item[1]["n"]):
        against = yours.calls.get(key)
        if against is None:
            if _is_cut_short(yours):
                return None, count
            return _parting(rank, line, line, "length", f"the other run ends before {_words(line)}"), count
        if not same_size:
            verdict, known = _shared_result_differs(left, right, rank, key, line, against)
            count += known
            if verdict is not None:
                return verdict, count
            continue
        count += 1
        if line["op"] != against["op"] or line["shapes"] != against["shapes"]:
            words = f"{_words(line)} against {_words(against)}"
            return _parting(rank, line, against, "call", words), count
        if line["in"] != against["in"]:
            return _input_differs(left, right, rank, key, line, against), count
        if _out(mine, line) != _out(yours, against) and int(line["n"]) in mine.done and int(against["n"]) in yours.done:
            words = f"{_words(line)}: the result differs, though rank {rank} handed in the same"
            return _parting(
                rank, line, against, "result", words, (), *_by_how_much(left, right, rank, key, line)
            ), count
    more = [line for key, line in yours.calls.items() if key not in mine.calls]
    if more and not _is_cut_short(mine):
        first = min(more, key=lambda line: int(line["n"]))
        return _parting(rank, first, first, "length", f"the first run ends before {_words(first)}"), count
    return None, count


def _shared_result_differs(
    left: Records, right: Records, rank: int, key: tuple[str, int], line: Line, against: Line
) -> tuple[Parting | None, bool]:
    """Of runs with different numbers of ranks: a result that all share, by its values; and whether they could be compared."""
    if line["op"] != against["op"] or line["shapes"] != against["shapes"]:
        return None, False
    largest, relative = _by_how_much(left, right, rank, key, line)
    if relative is None or relative < _CLOSE:
        return None, relative is not None
    words = f"{_words(line)}: the result differs by more than another order of adding explains"
    return _parting(rank, line, against, "result", words, (), largest, relative), True


def _input_differs(
    left: Records, right: Records, rank: int, key: tuple[str, int], line: Line, against: Line
) -> Parting:
    index = next(place for place, pair in enumerate(zip(line["in"], against["in"], strict=False)) if pair[0] != pair[1])
    kind, *shape = line["shapes"][index]
    width = _SIZES.get(kind, 1)
    parts = [side.get("parts", [""] * (index + 1))[index] for side in (line, against)]
    where = [(low // width, -(-high // width)) for low, high in different_ranges(_count(shape) * width, *parts)]
    names = _names(left.of(rank), _count(shape), where)
    largest, relative = _by_how_much(left, right, rank, key, line)
    words = f"{_words(line)}: what rank {rank} hands in differs, elements " + ", ".join(
        f"{low} to {high - 1}" for low, high in where[:3]
    )
    return _parting(rank, line, against, "input", words, names, largest, relative)


def _parting(
    rank: int,
    line: Line,
    against: Line,
    what: str,
    text: str,
    names: Sequence[str] = (),
    largest: float | None = None,
    relative: float | None = None,
) -> Parting:
    places = (str(line.get("line", "")), str(against.get("line", "")))
    return Parting(rank, int(line["s"]), what, text, places, tuple(names), largest, relative, int(line["n"]))


def _by_how_much(
    left: Records, right: Records, rank: int, key: tuple[str, int], line: Line
) -> tuple[float | None, float | None]:
    """The largest difference between the two results, where both are kept whole."""
    kind = str(line["shapes"][0][0]) if line["shapes"] else ""
    size = sum(_count(shape[1:]) for shape in line["shapes"]) * _SIZES.get(kind, 0)
    if not size or line["op"] not in ("allreduce_", "broadcast_", "reduce_", "allreduce_coalesced_"):
        return None, None
    try:
        one, other = (_values(side.result(rank, *key, size), kind) for side in (left, right))
    except (BrokenRecordError, KeyError, OSError):
        return None, None
    if not one:
        return None, None
    largest = max(abs(mine - yours) for mine, yours in zip(one, other, strict=False))
    scale = max(map(abs, one)) or 1.0
    return largest, largest / scale


def _values(data: bytes, kind: str) -> list[float]:
    width = _SIZES[kind]
    count = len(data) // width
    step = max(1, count // _MOST_VALUES)
    if kind == "bfloat16":
        halves = struct.unpack(f"<{count}H", data)[::step]
        return [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]
    return [float(value) for value in struct.unpack(f"<{count}{_LETTERS[kind]}", data)[::step]]


def _out(record: Record, line: Line) -> Any:
    return record.done.get(int(line["n"]), {}).get("out")


def _is_cut_short(record: Record) -> bool:
    return "ended" not in record.meta


def _count(shape: Sequence[int]) -> int:
    found = 1
    for extent in shape:
        found *= int(extent)
    return found


def _words(line: Line) -> str:
    shapes = ", ".join(f"{shape[0]}{list(shape[1:])}" for shape in line["shapes"])
    return f"{line['op'].strip('_')} of {shapes or 'nothing'}, call {line['q']} of group {line['g']}"


def _names(record: Record, count: int, where: list[tuple[int, int]]) -> list[str]:
    """Parameters in these elements of a DDP bucket, by the layout that the rank noted."""
    for model in record.meta.get("buckets", []):
        rows = model.get("parameters", [])
        for bucket in model.get("buckets", []):
            places = [place for place in bucket if isinstance(place, int) and 0 <= place < len(rows)]
            if sum(rows[place][1] for place in places) != count:
                continue
            found, passed = [], 0
            for place in places:
                name, size = rows[place]
                if any(low < passed + size and high > passed for low, high in where):
                    found.append(str(name))
                passed += size
            return found[:8]
    return []


def _cut_short(left: Records, right: Records, ranks: Sequence[int]) -> list[str]:
    """A run that was killed says nothing about what would have come."""
    found = []
    for name, side in (("first", left), ("second", right)):
        cut = [str(rank) for rank in ranks if _is_cut_short(side.of(rank))]
        if cut:
            found.append(f"the {name} run's recording was cut short at rank {', '.join(cut)}: compared up to there")
    return found


def _data(mine: Record, yours: Record, first: Parting) -> list[str]:
    """Whether the runs had other data before they parted: then that is why."""
    for kind, words in (("order", "samples chosen"), ("batch", "batches"), ("model-input", "inputs of the model")):
        for one, other in zip(mine.marks[kind], yours.marks[kind], strict=False):
            if one["mark"] != other["mark"]:
                if int(one["s"]) <= first.step:
                    return [f"data: the {words} differ from step {one['s']} on"]
                break
    return []


def _notes(one: Recording, other: Recording, ranks: list[int]) -> list[str]:
    found = []
    if one.size != other.size:
        found.append(f"{one.size} ranks against {other.size}: only results that all ranks share are compared")
        if "full" not in (one.mode, other.mode) or one.mode != other.mode:
            raise ReplayError(
                "runs of different sizes can only be compared by their results: record both with --record=full"
            )
    before, after = (side.ranks[ranks[0]].get("software", {}) for side in (one, other))
    found += [
        f"stack: {name} is {before.get(name, 'not there')} against {after.get(name, 'not there')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name) and name != "PYTHONHASHSEED"
    ]
    then, now = (side.ranks[ranks[0]].get("sources", {}) for side in (one, other))
    found += [
        f"source: {name} is not the same file" for name in sorted(then.keys() & now.keys()) if then[name] != now[name]
    ]
    return found
