"""What frameworks log when they trace or compile a function: which one, so that it can be counted.

WARNING:2026-01-05 10:12:01,553:jax._src.dispatch:196: Finished XLA compilation of jit(train_step) in 0.110427856 sec
Finished XLA compilation of jit(train_step) in 0.78 sec
WARNING:tensorflow:6 out of the last 6 calls to <function train_step at 0x7f00> triggered tf.function retracing. Tracing is expensive …
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.window import Window

TRIGGERS = ("Finished XLA compilation of ", "triggered tf.function retracing")

_COMPILED = re.compile(r"Finished XLA compilation of (?:(?:jit|pmap|pjit)\()?(?P<name>[^\s()]{1,80})\)? in ")
_RETRACED = re.compile(
    r"calls to <(?:bound method |function )?(?P<name>[\w.<>]{1,80}).*triggered tf\.function retracing"
)
_OF_LIBRARY = re.compile(
    r"^(?:_|broadcast_in_dim$|convert_element_type$|fn$|prim_fun$|<lambda>$)"
)  # small programs that run for everything


def read(window: Window) -> Iterator[Event]:
    """Progress events with the function's name."""
    for source, pattern in (("compilation", _COMPILED), ("retracing", _RETRACED)):
        if (found := pattern.search(window.text)) is not None and not _OF_LIBRARY.match(found["name"]):
            yield window.event(EventKind.PROGRESS, source, data={"what": found["name"]})
