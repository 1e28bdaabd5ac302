"""Detectors: each looks through a whole job for one kind of anomaly that no program reports, and says it as facts.

One module here with a function `detect(job)` is one detector; they are found by scanning. Rules turn the facts into findings
and hold all texts.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module

from phalanx.diagnosis.detectors.protocol import Job
from phalanx.model import Event
from phalanx.sources import Observations

__all__ = ["Job", "detect_all", "detectors"]


@cache
def detectors() -> dict[str, Callable[[Job], Iterator[Event]]]:
    """Every detector by the name of its module."""
    modules = {module.name: import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)}
    return {name: module.detect for name, module in modules.items() if hasattr(module, "detect")}


def detect_all(seen: Observations) -> list[Event]:
    """What all detectors find. None of them sees what another found."""
    job = Job(tuple(seen.files), tuple(seen.events))
    return [event for detect in detectors().values() for event in detect(job)]
