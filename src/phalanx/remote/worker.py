"""One rank of a function call: loads function and arguments, calls it, leaves the result or the exception in its folder.

Started by `bootstrap`; finds its task in PHALANX_WORKER, which it takes away before the function runs: JSON with the file of
the call, this rank's folder, what `sys.path` is to be, and which packages the agent lends.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle

import phalanx
from phalanx.remote.pickles import dump, explain, load

VARIABLE = "PHALANX_WORKER"
RESULT = "result.pickle"
EXCEPTION = "exception.pickle"


def describe(call: Path, folder: Path, path: list[str]) -> str:
    """What a rank finds in its variable."""
    lent = {"phalanx": str(Path(phalanx.__file__).parent), "cloudpickle": str(Path(cloudpickle.__file__).parent)}
    return json.dumps({"call": str(call), "folder": str(folder), "path": path, "lent": lent})


def main() -> None:
    """Run one rank to its end. An exception is printed as Python would, and exits with status 1."""
    told = json.loads(os.environ.pop(VARIABLE))
    folder = Path(told["folder"])
    _see(told["path"])
    try:
        function, arguments, named = load(Path(told["call"]))
        result = _call(function, arguments, named)
        explain("what the function returned cannot be sent back", lambda: dump(result, folder / RESULT))
    except SystemExit as error:
        if error.code in (None, 0):
            dump(None, folder / RESULT)
        raise
    except BaseException as error:
        _tell(error, folder)
        sys.stdout.flush()
        sys.exit(1)


def _see(path: list[str]) -> None:
    """Look for modules where the caller does, after what this interpreter was started with."""
    sys.path[:] = list(dict.fromkeys([*path, *(entry for entry in sys.path if entry)]))


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return function(*arguments, **named)


def _tell(error: BaseException, folder: Path) -> None:
    """Print it without our own frames, and keep it for the caller."""
    own = str(Path(__file__))
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == own:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))
    print(text, file=sys.stderr, end="", flush=True)
    try:
        dump((error, text), folder / EXCEPTION)
    except Exception:  # some exceptions hold what cannot be pickled: then its words must do
        dump((None, text), folder / EXCEPTION)
