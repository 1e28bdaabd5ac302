"""Whether a node's interpreter and packages are those that the job was made with: code does not travel between unequal ones."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from phalanx import __version__

# What a framework's own files are called where packages are installed; the rest is found by asking the installation.
_DISTRIBUTIONS = {
    "torch": ("torch",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"),
    "keras": ("keras",),
    "horovod": ("horovod",),
    "jax": ("jax", "jaxlib"),
}

_LENT = {"phalanx", "cloudpickle"}  # to the ranks, by their agent, where their interpreter has them not


def interpreter() -> dict[str, str]:
    """What code is compiled for, and who we are."""
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "implementation": sys.implementation.name,
        "machine": platform.machine(),
        "phalanx": __version__,
    }


def versions_of(distributions: Iterable[str]) -> dict[str, str | None]:
    """The installed version of each; None where it is missing."""
    return {name: _version(name) for name in distributions}


def _version(name: str) -> str | None:
    from importlib.metadata import (
        PackageNotFoundError,
        version,
    )  # slow to load; a local job needs none

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def look_at(python: str | None, packages: Iterable[str]) -> tuple[dict[str, str], dict[str, str | None]]:
    """Interpreter and packages that ranks will have here: those of another interpreter, if one is named. Raises OSError."""
    if python is None or python == sys.executable:
        return interpreter(), versions_of(packages)
    asked = [python, "-I", "-c", _ASK, *packages]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    try:
        told = json.loads(done.stdout)
    except ValueError:
        raise OSError(f"{python} is no Python that works: {done.stderr.strip()[-200:]}") from None
    return {**told["interpreter"], "phalanx": __version__}, told["found"]


_ASK = """
import json, platform, sys
from importlib.metadata import PackageNotFoundError, version
def find(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None
told = {"python": ".".join(map(str, sys.version_info[:3])), "implementation": sys.implementation.name, "machine": platform.machine()}
print(json.dumps({"interpreter": told, "found": {name: find(name) for name in sys.argv[1:]}}))
"""


def needed_packages(framework: str, modules: Iterable[str]) -> dict[str, str]:
    """The installed distributions that a job needs and their versions here: its framework's, and those of modules that
    its code names."""
    names = list(_DISTRIBUTIONS.get(framework, ()))
    tops = {module.partition(".")[0] for module in modules} - set(sys.stdlib_module_names) - _LENT - {"__main__"}
    if tops:
        from importlib.metadata import packages_distributions

        known = packages_distributions()
        names += [name for top in sorted(tops) for name in known.get(top, ())[:1]]
    return {name: found for name in dict.fromkeys(names) if (found := _version(name)) is not None}


def differences(
    here: Mapping[str, str], there: Mapping[str, Any], packages: Mapping[str, str], found: Mapping[str, Any]
) -> list[str]:
    """What does not agree, a clause each; empty if all does."""
    told = []
    for what, short in (("python", True), ("implementation", False), ("machine", False), ("phalanx", False)):
        mine, theirs = here[what], str(there.get(what))
        cut = ".".join(mine.split(".")[:2]), ".".join(theirs.split(".")[:2])
        if (cut[0] != cut[1]) if short else (mine != theirs):
            told.append(f"{what} is {theirs} there and {mine} here")
    for name, mine in packages.items():
        other = found.get(name)
        if other is None:
            told.append(f"{name} is missing there ({mine} here)")
        elif other != mine:
            told.append(f"{name} is {other} there and {mine} here")
    return told


def node_name() -> str:
    """What people call this machine."""
    return os.uname().nodename
