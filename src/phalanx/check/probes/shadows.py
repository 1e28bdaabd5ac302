"""Files that Python would import in place of an installed framework."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.check.check_fact import CheckFact, observe
from phalanx.check.options import CheckOptions
from phalanx.check.witness import Witness
from phalanx.model import Unchecked


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """On every host; the current folder is that of the job under a launcher."""
    for one in witnesses:
        for name, told in one.section("shadows").items():
            yield observe("framework-shadowed", (one.label,), name=name, file=told["file"], installed=told["installed"])
