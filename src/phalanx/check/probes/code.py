"""The job's own code: the same files with the same content on every host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from phalanx.check.agreement import split_of
from phalanx.check.options import CheckOptions
from phalanx.check.reading import Reading
from phalanx.check.witness import Witness, name_all
from phalanx.model import Unchecked

_SHOWN = 3


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[Reading | Unchecked]:
    """Of the scripts and folders that the user names."""
    for given in options.code:
        found = {one.label: one.section("code").get(given) for one in witnesses if "code" in one.facts}
        absent = tuple(label for label, digests in found.items() if digests is None)
        if absent:
            yield Reading(f"check: {given} is not there on {name_all(absent)}", accused=absent, values={"path": given})
        yield from _differing(given, [one for one in witnesses if found.get(one.label)], found)


def _differing(given: str, told: Sequence[Witness], found: Mapping[str, Any]) -> Iterable[Reading]:
    files = sorted({file for one in told for file in found[one.label]})
    odd: dict[str, None] = {}
    different: list[str] = []
    for file in files:
        split = split_of(told, lambda one, file=file: found[one.label].get(file, "missing"))  # type: ignore[misc]
        if split is not None:
            different.append(file or given)
            odd.update(dict.fromkeys(split.odd))
    if different:
        more = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
        whom = f"; {name_all(odd)} alone with it" if odd else ""
        yield Reading(
            f"check: the code in {given} differs between the hosts: {', '.join(different[:_SHOWN])}{more}{whom}",
            accused=tuple(odd),
            harmed=() if odd else tuple(one.label for one in told),
            values={"path": given, "there": name_all(odd) or "all hosts"},
        )
