"""Expressions that are compiled when they are first used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import pytest

import phalanx.diagnosis
import phalanx.sources
from phalanx.model.lazy import Lazy, lazy


def test_it_does_what_the_compiled_one_does() -> None:
    made, wanted = lazy(r"(?P<word>b\w+)", re.I), re.compile(r"(?P<word>b\w+)", re.I)
    text = "a Bee and a bug"
    assert made.search(text)["word"] == "Bee"  # type: ignore[index]
    assert made.search(text, 5)["word"] == "bug"  # type: ignore[index]
    assert [match.span() for match in made.finditer(text)] == [match.span() for match in wanted.finditer(text)]
    assert made.sub("x", text) == wanted.sub("x", text)
    assert (made.pattern, made.flags) == (wanted.pattern, wanted.flags)
    with pytest.raises(AttributeError):
        _ = made.no_such_method  # type: ignore[attr-defined]


def test_nothing_is_compiled_before() -> None:
    made = lazy("(")
    with pytest.raises(re.error):
        made.search("a")


def test_all_that_stand_in_modules_compile() -> None:
    found = [one for module in _modules() for one in _lazy_in(vars(import_module(module)).values())]
    assert len(found) > 50
    for one in found:
        assert one.pattern


def _modules() -> Iterator[str]:
    for package in (phalanx.diagnosis, phalanx.sources):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith((".worker", "__main__")):
                yield module.name


def _lazy_in(values: object) -> Iterator[Lazy]:
    for value in values if isinstance(values, list | tuple | type({}.values())) else ():
        if isinstance(value, Lazy):
            yield value
        elif isinstance(value, dict):
            yield from _lazy_in(value.values())
        else:
            yield from _lazy_in(value)
