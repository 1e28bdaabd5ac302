"""The job's own code: the same files with the same content on every host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from phalanx.model import Unchecked
from phalanx.preflight.agreement import split_of
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

_SHOWN = 3


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Of the scripts and folders that the user names."""
    for given in options.code:
        found = {one.label: one.section("code").get(given) for one in all_facts if "code" in one.facts}
        absent = tuple(label for label, digests in found.items() if digests is None)
        if absent:
            yield observe("code-missing", absent, path=given)
        yield from _differing(given, [one for one in all_facts if found.get(one.label)], found)


def _differing(given: str, told: Sequence[HostFacts], found: Mapping[str, Any]) -> Iterable[CheckFact]:
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
        yield observe(
            "code-differs",
            tuple(odd),
            () if odd else tuple(one.label for one in told),
            path=given,
            files=", ".join(different[:_SHOWN]) + more,
        )
