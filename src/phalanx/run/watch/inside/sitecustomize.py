"""Runs in every rank before its script, because its folder leads PYTHONPATH: starts the watch, then steps aside.

Must work with Python 3.8 and later, import nothing that costs time, print nothing and never raise. The user's own
sitecustomize runs afterwards, as if this one were not there.
"""

from __future__ import annotations

import os
import sys


def _step_aside() -> None:
    """Take this folder out of the path, for this process and for those that it starts."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != here]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [entry for entry in given if not entry or os.path.abspath(entry) != here]
    if any(kept):
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    else:
        os.environ.pop("PYTHONPATH", None)


def _run_the_users_own() -> None:
    """The next sitecustomize on the path. Not by `import`, which would hold this module's lock twice."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_told = os.environ.pop("PHALANX_INSIDE", None)
if _told:
    try:
        import phalanx_inside

        phalanx_inside.start(_told)
    except Exception:  # the watch may fail, the job must not
        pass
_step_aside()
_run_the_users_own()
