"""How many devices or processes a line speaks of, so that what is measured with few and with many can be compared.

world_size=4 throughput: 812.5 samples/sec
=== 2 GPUs ===
replicas 4 step 10 loss 2.3120
"""

from __future__ import annotations

from typing import NamedTuple

from phalanx.model.lazy import lazy
from phalanx.sources.progress import Position

_THINGS = r"(?:gpus?|devices?|replicas?|workers?|process(?:es)?|procs?|ranks|nodes|machines)"
_DEVICES = lazy(
    rf"\b(?:world[_ ]?size|(?:num|n|number of)[_ ]?(?:\w+[_ ])?{_THINGS}|gpus|devices|replicas|workers|processes|procs|ranks|nodes)\s?[=:]?\s?(\d{{1,4}})\b(?![./:,]\d)"
    rf"|(?<![\w./:-])(\d{{1,4}})[ -](?:\w+ )?{_THINGS}\b"
)
MEASURED = frozenset(("rate", "seconds", "loss"))  # kinds of numbers that are compared
_LONGEST = 160  # characters: longer lines list what is configured
_KEPT = 400
_EACH = lazy(r"\bper[ _-]?(?:gpu|device|worker|rank|process|replica)\b|/(?:gpu|device|worker|rank)\b")


class Stated(NamedTuple):
    """Where in a line the number of devices stands, and whether what is measured is meant for each of them."""

    start: int
    stop: int
    is_each: bool


class Measured(NamedTuple):
    """One number of a kind, with how many devices it was reached, and where it stands."""

    devices: int
    kind: str
    value: float
    at: Position
    line: int
    is_each: bool


def devices_in(low: str) -> Stated | None:
    """The number of devices that a line, in lower case, states; None where it states none, or several."""
    if len(low) > _LONGEST:
        return None
    found = list(_DEVICES.finditer(low))
    if len(found) != 1:
        return None
    return Stated(*found[0].span(found[0].lastindex or 0), _EACH.search(low) is not None)


class Scales:
    """What one speaker measures, by the number of devices it last stated."""

    __slots__ = ("_devices", "_is_each", "measured")

    def __init__(self) -> None:
        self.measured: list[Measured] = []
        self._devices = 0
        self._is_each = False

    def state(self, text: str, span: Stated) -> None:
        """A line states how many devices there are from here on."""
        self._devices, self._is_each = int(text[span.start : span.stop]), span.is_each

    def take(self, kind: str, printed: str, at: Position, line: int) -> None:
        """Add a number that was measured."""
        if self._devices and len(self.measured) < _KEPT:
            self.measured.append(Measured(self._devices, kind, float(printed), at, line, self._is_each))

    @property
    def counts(self) -> set[int]:
        """With how many devices anything was measured."""
        return {one.devices for one in self.measured}
