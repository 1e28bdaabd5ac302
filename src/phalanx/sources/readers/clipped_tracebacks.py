"""Tracebacks whose first letter was lost where somebody copied them.

raceback (most recent call last):
  File "/home/user/train.py", line 88, in <module>
    loss.backward()
RuntimeError: Connection closed by peer [10.0.0.5]:4242
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model import Event
from phalanx.sources.readers import tracebacks
from phalanx.sources.window import Window

_CLIPPED = "raceback (most recent call last)"
TRIGGERS = (_CLIPPED,)


def read(window: Window) -> Iterator[Event]:
    """The same event as for a whole one; whole ones have their own reader."""
    if window.text.lstrip(" >").startswith(_CLIPPED):
        yield from tracebacks.read(window)
