"""Regular expressions that are compiled when they are first used.

A module that knows dozens of them for what seldom happens would else take longer to load than most logs take to read.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "pattern", "flags")


class Lazy:
    """Stands for a compiled expression. Once used it has that one's methods as its own, so that it costs nothing more."""

    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self._text, self._flags)
        self.__dict__.update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


def lazy(text: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` makes of it, but later."""
    return cast(re.Pattern[str], Lazy(text, flags))
