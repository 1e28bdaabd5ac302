"""Starts a rank of a function call in any interpreter, also one in which neither phalanx nor cloudpickle is installed.

    python bootstrap.py     finds its task in PHALANX_WORKER, see `worker`

The two packages are then loaded from where the agent has them, and nothing else is: its other packages stay out of sight.
"""

import importlib.machinery
import importlib.util
import json
import os
import sys


def lend(name: str, folder: str) -> None:
    """Make one package importable from a folder, unless the interpreter has it."""
    if importlib.util.find_spec(name) is not None:
        return
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    for _name, _folder in json.loads(os.environ["PHALANX_WORKER"])["lent"].items():
        lend(_name, _folder)
    from phalanx.remote.worker import main

    main()
