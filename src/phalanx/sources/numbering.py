"""Numbers the lines of a file without counting them all: most lines are never shown to anybody.

Counting takes as long as reading. Where nobody asks for a number over a long stretch, it is passed over as if each of its
bytes were a line. Numbers then still rise with the place, and near one another are exactly as far apart as their lines,
which is all that a comparison needs. What is shown is put right at the end: the stretches before it are counted after all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.model.event import same_line

FAR = 256 << 10  # bytes; a shorter way is counted. Not less than the heads and tails that are surveyed
_NEAR = 64 << 10  # a line numbered after a hit is no further from it than a reader looks ahead
_AT_ONCE = 1 << 20
_MOST_COUNTED = 2 << 30  # bytes of a stretch: of one beyond it nobody waits for the number


@dataclass(slots=True)
class _Gap:
    """A stretch that was passed over; numbers above `line` come after it."""

    start: int
    stop: int
    line: int
    surplus: int | None = None  # by how much the numbers after it are too high, once somebody asked


@dataclass(slots=True)
class Gaps:
    """What was passed over in one file, which can be read again."""

    path: Path
    exact: int  # bytes at the file's beginning that are counted in any case
    _gaps: list[_Gap] = field(default_factory=list)

    def add(self, start: int, stop: int, line: int) -> None:
        """Pass over the bytes from `start`, in this line, to `stop`. Stretches come in the order of the file."""
        self._gaps.append(_Gap(start, stop, line + _NEAR))

    def true_line(self, line: int) -> int:
        """The real number of a line; 0 if the file can no longer be read, or it would take too long."""
        before = [gap for gap in self._gaps if gap.line < line]
        try:
            for gap in before:
                if gap.surplus is None and gap.stop - gap.start > _MOST_COUNTED:
                    return 0
                if gap.surplus is None:
                    gap.surplus = gap.stop - gap.start - self._count(gap)
        except OSError:
            return 0
        return line - sum(gap.surplus or 0 for gap in before)

    def _count(self, gap: _Gap) -> int:
        count, left = 0, gap.stop - gap.start
        with self.path.open("rb") as file:
            file.seek(gap.start)
            while left > 0 and (data := file.read(min(left, _AT_ONCE))):
                count += data.count(b"\n")
                left -= len(data)
        return count


@dataclass(slots=True)
class Numbers:
    """The numbers of a piece's lines, counted from the nearest place where the number is known."""

    data: bytes | bytearray
    first_line: int
    offset: int = 0  # of the piece in the file
    gaps: Gaps | None = None  # None if the file can only be read once: then all is counted
    joined: Callable[[int], int] | None = None  # what tells the number that a line had before lines were joined
    _recent: list[tuple[int, int]] = field(default_factory=list)
    _edges: list[tuple[int, int, int]] = field(default_factory=list)  # of gaps: start, stop, the number at the stop

    @property
    def true_line(self) -> Callable[[int], int]:
        """What tells the number to be shown."""
        return self.joined or (same_line if self.gaps is None else self.gaps.true_line)

    def at(self, offset: int) -> int:
        """The number of the line that begins at or holds this offset."""
        if not self._recent:
            self._begin()
        place, number = self._nearest(offset)
        last = max(self._recent)[0]
        if self.gaps is not None and place == last and offset - place > FAR:
            self.gaps.add(self.offset + place, self.offset + offset, number)
            number += offset - place
            self._edges.append((place, offset, number))
        elif place <= offset:
            number += self.data.count(b"\n", place, offset)
        else:
            number -= self.data.count(b"\n", offset, place)
        self._recent = [*self._recent[-3:], max(self._recent), (offset, number)]
        return number

    def _begin(self) -> None:
        """The head of a file is numbered exactly: it is surveyed by itself, from the first line on."""
        self._recent = [(0, self.first_line)]
        if self.gaps is not None and self.offset == 0:
            head = min(self.gaps.exact, len(self.data))
            self._recent.append((head, self.first_line + self.data.count(b"\n", 0, head)))

    def _nearest(self, offset: int) -> tuple[int, int]:
        for start, stop, number in self._edges:
            if start < offset < stop:  # from the side that belongs to what follows
                return stop, number
        known = [*self._recent, (0, self.first_line), *((stop, number) for _, stop, number in self._edges)]
        return min(known, key=lambda mark: abs(mark[0] - offset))
