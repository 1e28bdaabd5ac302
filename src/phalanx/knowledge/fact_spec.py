"""What a rule asks of a fact: its id, and values that some of its fields must have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phalanx.model.fact import Fact
from phalanx.model.facts import fact_types


@dataclass(frozen=True, slots=True)
class FactSpec:
    """`where` maps a field to its allowed values; `True` and `False` ask whether it is there (and neither empty nor 0)."""

    id: str
    where: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def matches(self, fact: Fact) -> bool:
        """Whether the fact is what the rule asks for."""
        return fact.id == self.id and all(_is_one_of(fact.fields.get(name), allowed) for name, allowed in self.where)


def _is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    return any(bool(value) is one if isinstance(one, bool) else value == one for one in allowed)


def parse_fact(fact_id: str, where: Mapping[str, Any]) -> FactSpec:
    """A rule's `fact` and `where`. Raises ValueError for an id or a field that is not declared."""
    declared = fact_types().get(fact_id)
    if declared is None:
        raise ValueError(f"unknown fact {fact_id!r}; they are declared in phalanx/model/facts")
    if unknown := where.keys() - declared.fields.keys():
        raise ValueError(f"the fact {fact_id} has no field {sorted(unknown)[0]!r}")
    asked = ((name, tuple(value) if isinstance(value, list) else (value,)) for name, value in where.items())
    return FactSpec(fact_id, tuple(asked))
