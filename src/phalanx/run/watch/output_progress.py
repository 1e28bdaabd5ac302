"""What a rank's output tells the watch: that it still has something new to say, and at which step it is."""

from __future__ import annotations

from collections import deque

from phalanx.sources.progress import position_of
from phalanx.sources.text import NUMBER

_LOOKED_AT = 40  # lines a tick that are read; a rank that floods its output is counted, not read
_KINDS = 512  # forms of lines that are remembered
_KEPT = 120


class OutputProgress:
    """Listens to one rank. `line` is called for every line and does next to nothing; `digest` once a tick."""

    __slots__ = (
        "_kinds",
        "_last_loss",
        "_rate_from",
        "_room",
        "advances",
        "last",
        "lines",
        "news",
        "passed",
        "pending",
        "position",
        "steps_per_second",
    )

    def __init__(self) -> None:
        self.lines = 0
        self.news = 0  # grows when a line shows progress: a step further, or words not heard before
        self.advances = 0  # of these, steps further
        self.passed = 0  # steps, also those between two that were told
        self.position: tuple[int, int] | None = None
        self.steps_per_second: float | None = None
        self.last: deque[bytes] = deque(maxlen=_KEPT)
        self.pending: list[bytes] = []
        self._room = _LOOKED_AT
        self._kinds: dict[str, None] = {}
        self._last_loss = ""
        self._rate_from: tuple[float, tuple[int, int]] | None = None

    def line(self, line: bytes) -> None:
        """Take a line in."""
        self.lines += 1
        self.last.append(line)
        if self._room:
            self._room -= 1
            self.pending.append(line)

    def digest(self, now: float) -> None:
        """Read what came in since the last time."""
        pending, self.pending, self._room = self.pending, [], _LOOKED_AT
        for raw in pending:
            text = raw[:400].decode("utf-8", "replace").strip()
            if not text:
                continue
            position = position_of(text)
            if position is not None and position != (-1, -1):
                self._advance(position, now)
            elif position is not None and text != self._last_loss:
                self._last_loss = text  # a loss without a step: another figure is another step
                self.news += 1
                self.advances += 1
                self.passed += 1
            else:
                self._remember(NUMBER.sub("#", text))

    @property
    def step(self) -> int | None:
        """The last step that was told; the epoch, where only that is told."""
        if self.position is None:
            return None
        return self.position[1] if self.position[1] >= 0 else self.position[0]

    def _advance(self, position: tuple[int, int], now: float) -> None:
        if self.position is not None and position <= self.position and position[0] >= self.position[0] >= 0:
            return  # told again: a retry, or a second line about the same step
        if position != self.position:
            self.news += 1
            self.advances += 1
            before = self.position or position
            self.passed += max(position[1] - before[1], 1) if position[0] == before[0] else 1
        self._measure(position, now)
        self.position = position

    def _measure(self, position: tuple[int, int], now: float) -> None:
        before = self._rate_from
        if before is None or position[0] != before[1][0] or position[1] <= before[1][1]:
            self._rate_from = (now, position)  # a new epoch counts its steps from the start
        elif now - before[0] >= 1.0:
            rate = (position[1] - before[1][1]) / (now - before[0])
            self.steps_per_second = rate if self.steps_per_second is None else 0.5 * (self.steps_per_second + rate)
            self._rate_from = (now, position)

    def _remember(self, kind: str) -> None:
        """Words that came before, numbers aside, are no news: a rank that retries for ever says them again."""
        if kind in self._kinds:
            return
        self.news += 1
        self._kinds[kind] = None
        if len(self._kinds) > _KINDS:
            del self._kinds[next(iter(self._kinds))]
