"""Says things where the people who started the job look: on the standard error of its lowest living rank."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from phalanx.embedded.local_ranks import LocalRanks
from phalanx.model.printable import printable

_PATIENCE_S = 2.0  # with a reader that does not read


class Teller:
    """Writes to a stream of a rank without its help; where that cannot be opened, the log beside the bundle has it."""

    def __init__(self, ranks: LocalRanks) -> None:
        self._ranks = ranks
        self.also: list[Callable[[str], None]] = []

    def say(self, text: str) -> None:
        """A line of our own."""
        self._write(f"phalanx: {printable(text)}\n")

    def say_block(self, text: str) -> None:
        """Several lines, as they are."""
        self._write("".join(f"{printable(line)}\n" for line in text.splitlines()))

    def _write(self, text: str) -> None:
        print(text, end="", flush=True)  # into this node's log
        left = memoryview(text.encode("utf-8", "replace"))
        until = time.monotonic() + _PATIENCE_S
        descriptor = self._stream()
        while left and descriptor is not None and time.monotonic() < until:
            try:
                left = left[os.write(descriptor, left) :]
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                return

    def _stream(self) -> int | None:
        ranks = sorted(self._ranks.known.values(), key=lambda one: (one.ended, one.rank))
        return next((one.stderr for one in ranks if one.stderr is not None), None)

    def close(self) -> None:
        """Let go of the streams, so that who reads them sees their end."""
        for one in self._ranks.known.values():
            if one.stderr is not None:
                with contextlib.suppress(OSError):
                    os.close(one.stderr)
                one.stderr = None
