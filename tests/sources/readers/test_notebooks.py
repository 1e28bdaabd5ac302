"""Tracebacks of notebooks."""

from __future__ import annotations

from phalanx.model import EventKind

from .test_tracebacks import events

TEXT = """\
---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
<ipython-input-7-5a> in <module>()
      1 with strategy.scope():
----> 2     model.fit(data)
      3 pass
/usr/lib/python3/dist-packages/keras/engine/training.py in fit(self, x)
    100     check(x)
--> 101     raise ValueError("steps")
ValueError: steps_per_epoch is missing
"""


def test_whole() -> None:
    (event,) = events(TEXT)
    assert event.kind is EventKind.EXCEPTION
    assert event.text == "ValueError: steps_per_epoch is missing"
    assert event.user_frame is not None
    assert (event.user_frame.line, event.user_frame.source) == (2, "model.fit(data)")


def test_cut_before_the_message() -> None:
    (event,) = events("\n".join(TEXT.splitlines()[:7]))
    assert event.text == "ValueError"
    assert len(event.frames) == 2
