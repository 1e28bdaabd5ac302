"""A regular expression that is checked when it is loaded and compiled when it is first used.

Of the thousands of expressions in the rules a log needs a handful; compiling all of them would take longer than
reading most logs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache


@cache
def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)


@dataclass(frozen=True, slots=True)
class Expression:
    """What to search for. Its syntax has been checked by whoever made it."""

    pattern: str
    flags: int = 0

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the text."""
        return _compiled(self.pattern, self.flags).search(text)

    @property
    def ignores_case(self) -> bool:
        """Whether letters of it, all or those in a group `(?i:…)`, match in either case."""
        return bool(self.flags & re.IGNORECASE) or "(?i" in self.pattern
