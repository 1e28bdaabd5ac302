"""What a function asks for: checked when it is said, so that a mistake is told where it was made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from phalanx.calls.errors import CannotStart
from phalanx.frameworks.launching import load_launchable
from phalanx.run.spec import JobSpec

_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|m|min|h|d)?")
_SECONDS = {None: 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run a function."""

    spec: JobSpec = field(default_factory=lambda: JobSpec(size=1, is_call=True))
    secrets: tuple[str, ...] = ()  # names of variables; their values are taken when the function is called
    agent_python: str | None = None
    agreement: str = "error"
    checkpoints: str | None = None  # a folder that all attempts share
    project: str | None = None  # the folder that travels; the current one unless said
    backend: str = "local"
    options: Mapping[str, object] = field(default_factory=dict)


def seconds(given: float | str | None) -> float | None:
    """`90`, `"90s"`, `"15m"`, `"2h"`, `"1d"`. Raises CannotStart."""
    if given is None:
        return None
    if isinstance(given, str):
        match = _TIME.fullmatch(given.strip())
        if match is None:
            raise CannotStart(f'timeout="{given}": give seconds, or "90s", "15m", "2h", "1d"')
        value = float(match[1]) * _SECONDS[match[2]]
    else:
        value = float(given)
    if not 0 < value < math.inf:
        raise CannotStart(f"timeout={given!r}: must be more than nothing, and end some day")
    return value


def workers_of(given: object) -> tuple[int, int | None]:
    """How many workers, and with how few it still makes sense. Raises CannotStart."""
    if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= 4096:
        return given, None
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        fewest, most = given
        if isinstance(fewest, int) and isinstance(most, int) and 1 <= fewest <= most <= 4096:
            return most, fewest
    raise CannotStart(f"workers={given!r}: give a number from 1 to 4096, or the fewest and the most as in (2, 4)")


def check_framework(name: str | None) -> str | None:
    """A framework that can be launched. Raises CannotStart."""
    if name is not None and name not in load_launchable():
        raise CannotStart(f"framework={name!r}: not known; one of {', '.join(sorted(load_launchable()))}")
    return name


def check_choice(what: str, value: str, choices: tuple[str, ...]) -> str:
    """One of several. Raises CannotStart."""
    if value not in choices:
        raise CannotStart(f"{what}={value!r}: one of {', '.join(choices)}")
    return value


def check_variables(given: Mapping[str, str] | None) -> dict[str, str]:
    """Variables for every rank. Raises CannotStart."""
    found = {}
    for name, value in (given or {}).items():
        if not _NAME.fullmatch(str(name)) or "\0" in str(value):
            raise CannotStart(f"env: {name!r} is no name of a variable, or its value holds a zero byte")
        found[str(name)] = str(value)
    return found


def check_secrets(names: Sequence[str]) -> tuple[str, ...]:
    """Names of variables whose values are taken from the caller's environment. Raises CannotStart."""
    if isinstance(names, str):
        raise CannotStart(f'secrets={names!r}: give a list of names, as in ["HF_TOKEN"]')
    for name in names:
        if not _NAME.fullmatch(name):
            raise CannotStart(f"secrets: {name!r}: give the variable's name, never its value")
    return tuple(names)
