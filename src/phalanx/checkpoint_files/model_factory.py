"""A model of the user's as what a checkpoint is compared with: `package.module:factory` is imported and called in another process."""

from __future__ import annotations

import json
import subprocess
import sys

from phalanx.checkpoint_files.comparing import Expected
from phalanx.checkpoint_files.model import CheckpointError

_TIMEOUT = 600
_MARK = "phalanx-model:"
_PROGRAM = """
import importlib, json, os, sys
sys.path.insert(0, os.getcwd())
name, _, attribute = sys.argv[1].partition(":")
made = importlib.import_module(name)
for word in attribute.split("."):
    made = getattr(made, word)
if callable(made) and not hasattr(made, "state_dict"):
    made = made()
elif isinstance(made, type):
    made = made()
if hasattr(made, "state_dict"):
    found = [[name, list(one.shape), str(one.dtype).replace("torch.", "")] for name, one in made.state_dict().items() if hasattr(one, "shape")]
elif hasattr(made, "weights"):
    found = [[getattr(one, "path", one.name), [int(side) for side in one.shape], str(one.dtype)] for one in made.weights]
else:
    sys.exit("it is neither a model of PyTorch nor of Keras: " + type(made).__name__)
sys.stdout.write("\\n" + sys.argv[2] + json.dumps(found) + "\\n")
"""


def is_factory(word: str) -> bool:
    """Whether a word is `module:attribute`."""
    module, mark, attribute = word.partition(":")
    names = [*module.split("."), *attribute.split(".")]
    return bool(mark) and all(name.isidentifier() for name in names)


def expected_of_factory(word: str) -> Expected:
    """Names and shapes of the model. Raises CheckpointError with the error of the user's code."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, word, _MARK],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise CheckpointError(f"--against {word}: it did not return within {_TIMEOUT} s") from error
    line = next((one for one in reversed(done.stdout.splitlines()) if one.startswith(_MARK)), None)
    if done.returncode or line is None:
        words = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise CheckpointError(f"--against {word}: {words[0][:300]}")
    entries = json.loads(line.removeprefix(_MARK))
    return Expected(
        word, {name: tuple(shape) for name, shape, _ in entries}, {name: dtype for name, _, dtype in entries}
    )
