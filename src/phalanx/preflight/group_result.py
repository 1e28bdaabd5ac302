"""What a group of ranks that met found out about the network, in a form that travels through the launcher's output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from phalanx.model import Unchecked
from phalanx.model.facts import fact_from_json
from phalanx.preflight.check import gather, probe_network_of
from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.targets import Target

Labels = Mapping[str, tuple[str, int | None]]


@dataclass(frozen=True, slots=True)
class GroupResult:
    """`labels` are the members by the names that the facts use: host and rank of each."""

    labels: Labels
    facts: tuple[CheckFact, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    proven: frozenset[str] = field(default_factory=frozenset)
    calls: int = 0
    measured: int = 0

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `group_from_json` reads back."""
        return {
            "labels": {label: list(place) for label, place in self.labels.items()},
            "facts": [_to_json(one) for one in self.facts],
            "unchecked": [[one.what, one.needs, one.essential] for one in self.unchecked],
            "proven": sorted(self.proven),
            "calls": self.calls,
            "measured": self.measured,
        }

    def renamed(self, names: Mapping[tuple[str, int | None], str]) -> GroupResult:
        """The same with the names that the reader has for the members."""
        new = {label: names.get(place, label) for label, place in self.labels.items()}

        def rename(labels: Sequence[str]) -> tuple[str, ...]:
            return tuple(new.get(label, label) for label in labels)

        facts = tuple(
            replace(
                one,
                fact=replace(one.fact, hosts=rename(one.fact.hosts)),
                harmed=rename(one.harmed),
                evidence=tuple((new.get(label, label), text) for label, text in one.evidence),
            )
            for one in self.facts
        )
        return replace(self, labels={new[label]: place for label, place in self.labels.items()}, facts=facts)


def probe_group(targets: Sequence[Target], options: CheckOptions, seen: Sequence[CheckFact]) -> GroupResult:
    """Probe the network among these targets; what their own facts tell is compared by whoever reads all of them."""
    named, all_facts, silent, unchecked = gather(targets, options)
    labels = {one.label: (one.host, one.ranks[0] if one.ranks else None) for one in all_facts}
    found = probe_network_of(named, all_facts, options)
    facts = (*seen, *silent, *found.facts)
    return GroupResult(labels, facts, (*unchecked, *found.unchecked), found.proven, found.calls, found.measured)


def group_from_json(told: Mapping[str, Any]) -> GroupResult:
    """What `to_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
    return GroupResult(
        {str(label): (str(host), rank) for label, (host, rank) in told["labels"].items()},
        tuple(one for item in told["facts"] if (one := _from_json(item)) is not None),
        tuple(Unchecked(str(what), str(needs), bool(essential)) for what, needs, essential in told["unchecked"]),
        frozenset(map(str, told["proven"])),
        int(told["calls"]),
        int(told["measured"]),
    )


def _to_json(one: CheckFact) -> dict[str, Any]:
    return {
        **one.fact.to_json(),
        "harmed": list(one.harmed),
        "evidence": [list(pair) for pair in one.evidence],
        "unless": one.unless,
        "confidence": one.confidence,
        "by_luck": one.by_luck,
        "own": sorted(one.own),
    }


def _from_json(item: Mapping[str, Any]) -> CheckFact | None:
    fact = fact_from_json(item, "check")
    if fact is None:
        return None
    return CheckFact(
        fact,
        tuple(item["harmed"]),
        tuple((label, text) for label, text in item["evidence"]),
        item["unless"],
        item["confidence"],
        item["by_luck"],
        frozenset(item["own"]),
    )
