"""Runs in a rank before its script, because its folder leads PYTHONPATH: starts the observer, then steps aside.

It prints nothing and never raises. The next sitecustomize on the path, the watch's or the user's own, runs afterwards.
"""

from __future__ import annotations

import os
import sys


def _leave_the_path() -> None:
    """Take this folder out of the path, for this process and for those that it starts."""
    here = os.path.dirname(os.path.abspath(__file__))

    def is_ours(entry: str) -> bool:
        return bool(entry) and os.path.abspath(entry) == here

    sys.path[:] = [entry for entry in sys.path if not is_ours(entry)]
    left = os.pathsep.join(part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not is_ours(part))
    os.environ.pop("PYTHONPATH", None)
    if left:
        os.environ["PYTHONPATH"] = left


def _run_the_next() -> None:
    """Not by `import`, which would find this very module again."""
    import importlib.machinery
    import importlib.util

    found = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if found is not None and found.loader is not None:
        following = importlib.util.module_from_spec(found)
        sys.modules["sitecustomize"] = following
        found.loader.exec_module(following)


_settings = os.environ.pop("PHALANX_VERIFY", None)
_hands_on = False  # to ranks that the script starts itself
if _settings:
    try:
        import phalanx_verify

        _hands_on = phalanx_verify.start(_settings)
    except Exception as error:  # the observer may fail, the job must not
        print(f"phalanx: a rank is not verified: {type(error).__name__}: {error}", file=sys.stderr)
_path = os.environ.get("PYTHONPATH", "")
_leave_the_path()
_run_the_next()
if _hands_on:  # the processes that it starts find what this one has found
    os.environ["PYTHONPATH"] = _path
