"""The registry of facts: every `FactType` that a module of this folder declares in `FACTS`. One module holds one subject."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from phalanx.model.fact import Fact, FactError, FactType, Value, describe

__all__ = ["fact_from_json", "fact_types", "make_fact", "sentence_of"]


def _numbers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not all(type(item) is int for item in value):
        raise TypeError
    return tuple(value)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise TypeError
    return tuple(value)


def _plain(*kinds: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError
        return value

    return check


_READ: Mapping[str, Callable[[Any], Any]] = {
    "str": _plain(str),
    "int": _plain(int),
    "float": _plain(int, float),
    "bool": _plain(bool),
    "ranks": _numbers,
    "names": _names,
}


@cache
def fact_types() -> dict[str, FactType]:
    """Every declared kind of fact by its id; an id that two modules declare is an error."""
    found: dict[str, FactType] = {}
    for module in pkgutil.iter_modules(__path__):
        for declared in import_module(f"{__name__}.{module.name}").FACTS:
            if declared.id in found:
                raise FactError(f"the fact {declared.id} is declared twice, the second time in {module.name}.py")
            if unknown := set(declared.fields.values()) - _READ.keys():
                raise FactError(f"the fact {declared.id} has fields of unknown kinds: {', '.join(sorted(unknown))}")
            found[declared.id] = declared
    return found


def make_fact(
    fact_id: str,
    fields: Mapping[str, Any] | None = None,
    *,
    ranks: Sequence[int] = (),
    hosts: Sequence[str] = (),
    source: str = "",
) -> Fact:
    """A fact with its fields checked against the declaration. A field that is None is left out."""
    declared = fact_types().get(fact_id)
    if declared is None:
        raise FactError(f"there is no fact {fact_id!r}")
    checked: dict[str, Value] = {}
    for name, value in (fields or {}).items():
        if name not in declared.fields:
            raise FactError(f"the fact {fact_id} has no field {name!r}; it has {', '.join(declared.fields) or 'none'}")
        if value is None:
            continue
        try:
            checked[name] = _READ[declared.fields[name]](value)
        except TypeError:
            raise FactError(f"{fact_id}.{name} must be {declared.fields[name]}, not {value!r}") from None
    return Fact(fact_id, tuple(ranks), tuple(hosts), checked, source)


def fact_from_json(item: Any, source: str = "") -> Fact | None:
    """The fact in a JSON object; None if it is none, or one that this release does not know."""
    if not isinstance(item, dict) or not isinstance(item.get("fact"), str):
        return None
    fields, ranks, hosts = item.get("fields") or {}, item.get("ranks") or (), item.get("hosts") or ()
    if not isinstance(fields, dict):
        return None
    try:
        return make_fact(item["fact"], fields, ranks=_numbers(ranks), hosts=_names(hosts), source=source)
    except (FactError, TypeError):
        return None


def sentence_of(fact: Fact) -> str:
    """The sentence that shows a fact to people."""
    return describe(fact, fact_types()[fact.id])
