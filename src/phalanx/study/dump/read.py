"""Reads a dump into a collection: a plain file by ranges in several processes, a packed one as a stream.

Each finished range is kept together with the note that it is finished; an interrupted run does only what is left.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from phalanx.study.collect.presets import Preset
from phalanx.study.collect.store import Store
from phalanx.study.dump.archive import packing_of, read_blocks
from phalanx.study.dump.rows import LONGEST_ROW, ROW, Finder, Found, whole_rows
from phalanx.study.errors import StudyError

RANGE = 64 << 20
_PIECE = 4 << 20
_LOOK = 1 << 16
_BATCH = 64 << 20  # of a packed dump: how much is read between two writes to the store


@dataclass(frozen=True, slots=True)
class Range:
    """The rows that begin within these bytes of a plain file."""

    path: str
    start: int
    end: int
    preset: Preset


Engine = Callable[[Callable[[Range], Found], list[Range]], Iterator[tuple[Range, Found]]]


def read_dump(
    store: Store, preset: Preset, path: Path, engine: Engine, tell: Callable[[str], None] = lambda _: None
) -> Found:
    """Add a dump's questions to the collection; the counts are returned."""
    if not preset.site:
        raise StudyError(
            f"the preset {preset.name!r} names no site; a dump is of one. Use `stackoverflow` or a preset with `site`."
        )
    total = Found()
    identity = _identity(path, preset) if path.is_file() else ""
    read_before = any(store.cursor(f"{identity}:{part}").get("rows") for part in (0, "stream"))
    parts = _stream(store, preset, path) if packing_of(path) else _ranges(store, preset, path, engine)
    for name, state, found in parts:
        store.add_page(found.posts, name, state)
        for reason, sample in found.problems:
            store.note(path.name, reason, sample)
        total.rows += found.rows
        total.candidates += found.candidates
        tell(f"{total.rows:,} rows, {store.counts.new:,} posts kept")
    if not total.rows and not read_before:
        raise StudyError(f"{path}: no row was found. Is it the Posts.xml of a Stack Exchange dump?")
    return total


def _identity(path: Path, preset: Preset) -> str:
    """A dump and a query, as they are remembered: another dump of the same name has another size or time."""
    status = path.stat()
    return f"dump:{path.name}:{status.st_size}:{int(status.st_mtime)}:{preset.identity}"


def _ranges(store: Store, preset: Preset, path: Path, engine: Engine) -> Iterator[tuple[str, dict[str, object], Found]]:
    identity = _identity(path, preset)
    size = path.stat().st_size
    ranges = [Range(str(path), start, min(start + RANGE, size), preset) for start in range(0, size, RANGE)]
    left = [one for one in ranges if not store.cursor(f"{identity}:{one.start}")]
    for one, found in engine(find_in_range, left):
        yield f"{identity}:{one.start}", {"done": True, "rows": found.rows}, found


def find_in_range(one: Range) -> Found:
    """What one range holds: the rows whose first byte lies in it. Runs in a process, or on a machine, of its own."""
    finder, found = Finder(one.preset), Found()
    with Path(one.path).open("rb", buffering=0) as file:
        start, end = _next_row(file.fileno(), one.start), _next_row(file.fileno(), one.end)
        _find_between(file.fileno(), start, end, finder, found)
    return found


def _find_between(file: int, place: int, end: int, finder: Finder, found: Found) -> None:
    """Look through whole rows in a buffer that is used again and again: copying would cost more than looking."""
    buffer = bytearray(_PIECE)
    while place < end:
        room = min(len(buffer), end - place)
        length = os.preadv(file, [memoryview(buffer)[:room]], place)
        if not length:
            return
        cut = length if place + length >= end else buffer.rfind(ROW, 0, length)
        if cut <= 0 and len(buffer) < LONGEST_ROW:
            buffer = bytearray(len(buffer) * 2)  # a row longer than the buffer
            continue
        if cut <= 0:
            found.problems.append((f"{length} bytes without the beginning of a row", ""))
            cut = length
        finder.find(buffer, found, cut)
        place += cut


def _next_row(file: int, place: int) -> int:
    """Where the first row at or after a place begins; the file's end if there is none."""
    while block := os.pread(file, _LOOK, place):
        found = block.find(ROW)
        if found >= 0:
            return place + found
        if len(block) < len(ROW):
            return place + len(block)
        # The next look begins where a beginning may have been cut.
        place += len(block) - len(ROW) + 1
    return place


def _stream(store: Store, preset: Preset, path: Path) -> Iterator[tuple[str, dict[str, object], Found]]:
    name = f"{_identity(path, preset)}:stream"
    done = int(str(store.cursor(name).get("bytes") or 0))
    finder, found, place, kept = Finder(preset), Found(), 0, done
    for piece in whole_rows(read_blocks(path)):
        place += len(piece)
        # What an earlier run finished must be unpacked again, but not looked through.
        if place <= done:
            continue
        finder.find(piece, found)
        if place - kept >= _BATCH:
            yield name, {"bytes": place, "rows": True}, found
            found, kept = Found(), place
    yield name, {"bytes": place, "rows": bool(found.rows or kept)}, found
