"""What a reader sees: the line that triggered it, who wrote it, and the same writer's lines around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from phalanx.model import Event, EventKind, Frame
from phalanx.sources.dialects import Dialect, Speaker
from phalanx.sources.progress import LONGEST, may_hold_progress
from phalanx.sources.scanner import LOOK_AHEAD, Hit, Piece
from phalanx.sources.secrets import OutputRedactor, redact
from phalanx.sources.shapes import shape_of
from phalanx.sources.text import LONGEST_LINE, clean
from phalanx.sources.times import time_of

_LINES_BEFORE, _LINES_AFTER = 6, 3
_NEAREST = 1024
_LOOKED_BACK = 30  # lines before this one in which training may show


@dataclass(slots=True)
class Window:
    """A hit in its surroundings. Lines of other speakers are left out where the file marks its speakers."""

    file: str
    piece: Piece
    hit: Hit
    dialect: Dialect
    speaker: Speaker = field(init=False)
    _trained: bool | None = field(default=None, init=False)
    text: str = field(init=False)
    _whole: str = field(init=False)
    _number: int = 0
    _event: Event | None = None

    def __post_init__(self) -> None:
        self._whole = clean(self.piece.data[self.hit.start : self.hit.stop])
        self.speaker, self.text = self.dialect.read(self._whole)

    @property
    def number(self) -> int:
        """The number of the line that was hit."""
        if not self._number:
            self._number = self.piece.line_at(self.hit.start)
        return self._number

    @property
    def line_event(self) -> Event:
        """The line as an event, the same for all who ask."""
        if self._event is None:
            self._event = self.event(EventKind.LINE, "log")
        return self._event

    def following(self, most: int = 400) -> Iterator[tuple[int, str]]:
        """The same speaker's next lines, with their numbers."""
        data, position, number = self.piece.data, self.hit.stop, self.number
        floor = min(len(data), self.hit.start + LOOK_AHEAD)
        taken = 0
        while position < floor and taken < most:
            start = position + 1
            if data[position : position + 1] == b"\n":
                number += 1
            stop = data.find(b"\n", start, floor)
            position = stop if stop >= 0 else floor
            if start >= len(data):
                return
            speaker, text = self.dialect.read(clean(data[start : min(position, start + LONGEST_LINE)]))
            if speaker.key == self.speaker.key or (not speaker.key and not text.strip()):
                taken += 1
                yield number, text

    def below(self, most: int) -> Iterator[str]:
        """The next lines as they stand, of whichever speaker, without their prefixes."""
        data, start = self.piece.data, self.hit.stop + 1
        for _ in range(most):
            if start >= len(data):
                return
            stop = data.find(b"\n", start, start + LONGEST_LINE)
            stop = stop if stop >= 0 else min(len(data), start + LONGEST_LINE)
            yield self.dialect.read(clean(data[start:stop]))[1]
            start = stop + 1

    def preceding(self, most: int = 8, longest: int = LONGEST_LINE) -> Iterator[str]:
        """The lines just before, nearest first, of whichever speaker; without those of more bytes than `longest`."""
        data, stop, count = self.piece.data, self.hit.start - 1, 0
        while stop > 0 and count < most:
            floor = max(0, stop - LONGEST_LINE)  # of an endless line, only so much
            start = max(data.rfind(b"\n", floor, stop) + 1, floor)
            if stop - start <= longest:
                yield self.dialect.read(clean(data[start:stop]))[1]
            stop, count = start - 1, count + 1

    @property
    def nearest_before(self) -> str:
        """The bytes just before, however many lines they are."""
        return self.piece.data[max(0, self.hit.start - _NEAREST) : self.hit.start].decode("latin-1")

    @property
    def shows_training_before(self) -> bool:
        """Whether one of the lines before this one tells of progress; many patterns may ask."""
        if self._trained is None:
            may = may_hold_progress(self.nearest_before) or may_hold_progress(self.raw_before(_LOOKED_BACK))
            lines = self.preceding(_LOOKED_BACK, 4 * LONGEST) if may else iter(())
            self._trained = any(shape_of(line).shows_progress for line in lines)
        return self._trained

    def raw_before(self, most: int) -> str:
        """As many lines just before, byte by byte as they are, to see quickly whether it is worth reading them."""
        data, start = self.piece.data, self.hit.start
        for _ in range(most):
            if start <= 0:
                break
            floor = max(0, start - 1 - LONGEST_LINE)
            start = max(data.rfind(b"\n", floor, start - 1) + 1, floor)
        return data[start : self.hit.start].decode("latin-1")

    def context(self, line: int) -> Callable[[], tuple[tuple[int, str], ...]]:
        """The lines around a line at or below the hit, to be shown to a person; only their bytes are kept until then."""
        data = self.piece.data
        middle = self.hit.start
        for _ in range(line - self.number):
            middle = data.find(b"\n", middle) + 1 or len(data)
        start = middle
        for _ in range(_LINES_BEFORE):
            start = data.rfind(b"\n", max(0, start - 1 - LONGEST_LINE), max(start - 1, 0)) + 1
        stop = middle
        for _ in range(_LINES_AFTER + 1):
            found = data.find(b"\n", stop + 1, stop + LONGEST_LINE)
            stop = found if found >= 0 else min(len(data), stop + LONGEST_LINE)
        return partial(_shown_lines, bytes(data[start:stop]), line - data.count(b"\n", start, middle))

    def event(
        self,
        kind: EventKind,
        source: str,
        *,
        text: str | None = None,
        line: int | None = None,
        rank: int | None = None,
        frames: tuple[Frame, ...] = (),
        data: dict[str, object] | None = None,
    ) -> Event:
        """An event at this window's place; `rank` overrules the speaker's, for lines that name another rank."""
        return Event(
            kind=kind,
            text=redact(self.text if text is None else text),
            file=self.file,
            line=self.number if line is None else line,
            rank=self.speaker.rank if rank is None else rank,
            host=self.speaker.host,
            source=source,
            time=time_of(self._whole),
            frames=frames,
            data=data or {},
            context=self.context(self.number if line is None else line),
            true_line=self.piece.numbers.true_line,
        )


def _shown_lines(raw: bytes, first: int) -> tuple[tuple[int, str], ...]:
    """One after the other, since a name may stand above its value, and a private key has many lines."""
    redactor = OutputRedactor(raw)
    lines = (redactor.clean(clean(line[:400]).encode("utf-8", "surrogatepass") + b"\n") for line in raw.split(b"\n"))
    return tuple((first + index, line[:-1].decode("utf-8", "surrogatepass")) for index, line in enumerate(lines))
