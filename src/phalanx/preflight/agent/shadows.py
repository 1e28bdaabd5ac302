"""Section `shadows`: files that Python would import in place of an installed framework: of the current folder, PYTHONPATH, or a .pth file."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .collect import Setting

_NAMES = (
    "torch",
    "tensorflow",
    "keras",
    "horovod",
    "jax",
    "numpy",
    "mpi4py",
    "accelerate",
    "deepspeed",
    "lightning",
    "ray",
)


def shadows(setting: Setting) -> dict[str, dict[str, str]]:
    """By name, the file and the installed package that it hides."""
    try:
        from importlib import metadata
    except ImportError:
        return {}
    given = [part for part in setting.environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    # In the order in which the job's interpreter looks; what .pth files have added stands in sys.path.
    folders = list(dict.fromkeys([os.getcwd(), *map(os.path.abspath, given), *map(os.path.abspath, sys.path)]))
    found: dict[str, dict[str, str]] = {}
    for name in _NAMES:  # the first that is found counts
        file = next((path for folder in folders for path in _files(folder, name) if os.path.exists(path)), None)
        if file is None:
            continue
        try:
            home = str(metadata.distribution(name).locate_file(""))
        except Exception:  # not installed, or its metadata is damaged: then nothing is hidden
            continue
        hidden = os.path.realpath(os.path.join(home, name))
        if os.path.exists(hidden) and os.path.realpath(os.path.dirname(file)) not in (hidden, os.path.realpath(home)):
            found[name] = {"file": file, "installed": hidden}
    return found


def _files(folder: str, name: str) -> list[str]:
    return [os.path.join(folder, name, "__init__.py"), os.path.join(folder, name + ".py")]


FACTS = {"shadows": shadows}
