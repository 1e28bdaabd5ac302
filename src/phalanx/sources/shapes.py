"""What a line tells of training, remembered by its shape: the line with every digit made a 0.

Ranks print the same few lines over and over, with other numbers. What is asked of a line here treats all digits alike
(a test holds the expressions to that), so of each shape it is found out once; of the next such line only the numbers are
taken from where they stand.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from phalanx.sources.metrics import Number, numbers_in
from phalanx.sources.progress import (
    LONGEST,
    Position,
    find_position,
    is_ordinary,
    position_of,
    shows_connection,
    shows_end,
    shows_movement,
)

_REMEMBERED = 2048  # shapes; each takes about as much room as its line
FOLDED = bytes.maketrans(b"123456789", b"000000000")  # every digit becomes a 0
_HEXADECIMAL = b"0x"  # the one thing that is told by a digit

Span = tuple[int, int]


class Shape(NamedTuple):
    """What all lines of one shape tell."""

    shows_progress: bool = False
    epoch: Span | None = None  # where the numbers stand
    step: Span | None = None
    numbers: tuple[Number, ...] = ()
    shows_end: bool = False
    shows_movement: bool = False
    shows_connection: bool = False

    @property
    def is_plain(self) -> bool:
        """It tells nothing of how far the rank has come."""
        return not (self.shows_progress or self.shows_end or self.shows_movement or self.shows_connection)

    def position_in(self, text: str) -> Position:
        """The epoch and step that a line of this shape reports, -1 where it does not say."""
        if not text.isascii():  # places are those of the line in lower case, which may then be longer
            return position_of(text) or (-1, -1)
        epoch, step = self.epoch, self.step
        return int(text[slice(*epoch)]) if epoch else -1, int(text[slice(*step)]) if step else -1


PLAIN = Shape()  # of most lines: nothing of interest


def shape_of(text: str) -> Shape:
    """What a line tells, by its shape; of lines that are long or not ASCII found out each time."""
    if len(text) > LONGEST or not text.isascii():
        return _found_in(text)
    return _remembered(text.encode().translate(FOLDED))


def is_ordinary_line(text: str) -> bool:
    """As `is_ordinary`, by the shape of a line."""
    if len(text) > LONGEST or not text.isascii():
        return is_ordinary(text)
    folded = text.encode().translate(FOLDED)
    return is_ordinary(text) if _HEXADECIMAL in folded.lower() else _remembered_ordinary(folded)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(folded: bytes) -> Shape:
    return _found_in(folded.decode())


@lru_cache(maxsize=_REMEMBERED)
def _remembered_ordinary(folded: bytes) -> bool:
    return is_ordinary(folded.decode())


def _found_in(text: str) -> Shape:
    position = find_position(text)
    ends, moves, connects = shows_end(text), shows_movement(text), shows_connection(text)
    if position is None:
        return Shape(False, None, None, (), ends, moves, connects) if ends or moves or connects else PLAIN
    epoch, step = (match and match.span(match.lastindex or 0) for match in position)
    return Shape(True, epoch, step, numbers_in(text.lower()), ends, moves, connects)
