"""Packs the agent into one line of text and a short command that starts it: nothing is installed or written on the host.

The command reads the first line of its standard input, which holds the sources; what follows are requests.
"""

from __future__ import annotations

import base64
import json
import shlex
import zlib
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("agent")
_PACKAGE = "phalanx_agent"
# Without double quotes: it stands inside of shells, templates and JSON.
BOOTSTRAP = (
    "import sys,zlib,base64;exec(zlib.decompress(base64.b64decode(sys.stdin.readline())).decode())"
    " if sys.version_info>=(3,8) else sys.exit(76)"
)
TOO_OLD = 76
NO_PYTHON = 77
_LOADER = """
import importlib.abc, importlib.util, json, sys
S = json.loads({sources!r})
P = {package!r}
class Memory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name == P or name.startswith(P + '.') and name[len(P) + 1:] in S:
            return importlib.util.spec_from_loader(name, self, is_package=name == P)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        name = module.__name__[len(P) + 1:] or '__init__'
        exec(compile(S[name], P + '/' + name + '.py', 'exec'), module.__dict__)
        if name == '__init__':
            module.SENT = [one for one in S if one != '__init__']
sys.meta_path.insert(0, Memory())
serve = importlib.import_module(P + '.serve')
"""
# The interpreters that a shell without the user's profile may have to be told of.
_USUAL = ("/usr/bin/python3", "/usr/local/bin/python3", "/opt/conda/bin/python3", "/usr/libexec/platform-python")


@cache
def agent_library() -> str:
    """A program that makes the agent's package from memory and has `serve`; it starts nothing."""
    sources = {path.stem: path.read_text(encoding="utf-8") for path in sorted(_FOLDER.glob("*.py"))}
    return _LOADER.format(sources=json.dumps(sources), package=_PACKAGE)


@cache
def packed_agent() -> str:
    """The line to send first: about a fifth of the sources' size."""
    program = agent_library() + "serve.main()\n"
    return base64.b64encode(zlib.compress(program.encode(), 9)).decode()


def shell_command(python: str | None = None) -> str:
    """For a remote shell of any kind: finds an interpreter, says on standard error if PATH has none, and starts the agent."""
    start = f"-c {shlex.quote(BOOTSTRAP)}"
    if python is not None:
        return f"exec {shlex.quote(python)} {start}"
    script = (
        f"for p in python3 python; do command -v $p >/dev/null 2>&1 && exec $p {start}; done; "
        f'echo phalanx-check: no python3 in PATH=$PATH >&2; for p in {" ".join(_USUAL)} "$HOME"/*conda*/bin/python3; do '
        f"[ -x $p ] && exec $p {start}; done; exit {NO_PYTHON}"
    )
    return f"sh -c {shlex.quote(script)}"
