"""Answers requests, one JSON object a line: `{"id": 1, "do": "facts", "args": {}}` → `{"id": 1, "data": …}` …, `{"id": 1, "end": true}`.

Every request runs in a thread of its own, so that a slow one holds up no other. The end of the input ends the agent.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import threading

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

    Emit = Callable[[Any], None]
    Verb = Callable[[dict[str, Any], Emit], None]

LONGEST_LIFE_S = 900.0  # whoever asked is long gone by then


def modules() -> list[ModuleType]:
    """Every module of this package; where it was sent from memory, the sender has listed them."""
    package = sys.modules[__package__ or ""]
    sent = getattr(package, "SENT", None)
    names = sorted(sent) if sent else sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module("." + name, package.__name__) for name in names]


def verbs() -> dict[str, Verb]:
    """What can be asked. Two modules with the same verb are a mistake, and said to be."""
    found: dict[str, Verb] = {}
    for module in modules():
        for name, verb in getattr(module, "VERBS", {}).items():
            if name in found:
                raise ValueError("the verb %s is defined twice, the second time in %s" % (name, module.__name__))
            found[name] = verb
    return found


def answer(known: dict[str, Verb], request: dict[str, Any], send: Emit) -> None:
    """Answer one request, whatever happens."""
    number = request.get("id")
    try:
        verb = known.get(str(request.get("do")))
        if verb is None:
            raise ValueError("unknown verb %s" % request.get("do"))
        verb(request.get("args") or {}, lambda data: send({"id": number, "data": data}))
        send({"id": number, "end": True})
    except Exception as error:
        send({"id": number, "error": "%s: %s" % (type(error).__name__, error), "end": True})


def serve(lines: Iterable[str], write: Callable[[str], None]) -> None:
    """Answer until the input ends."""
    lock = threading.Lock()

    def send(message: Any) -> None:
        line = json.dumps(message, separators=(",", ":")) + "\n"
        with lock:
            write(line)

    known = verbs()
    send({"hello": 1, "python": list(sys.version_info[:3]), "pid": os.getpid()})
    for line in lines:
        try:
            request = json.loads(line)
        except ValueError:
            continue
        if isinstance(request, dict) and "do" in request:
            threading.Thread(target=answer, args=(known, request, send), daemon=True).start()


def main() -> None:
    """Serve standard input and output. A reader that went away ends it, and so does its longest life."""
    killer = threading.Timer(LONGEST_LIFE_S, os._exit, (3,))
    killer.daemon = True
    killer.start()

    def write(line: str) -> None:
        try:
            sys.stdout.write(line)
            sys.stdout.flush()
        except (OSError, ValueError):
            os._exit(0)

    serve(iter(sys.stdin.readline, ""), write)
    os._exit(0)  # without waiting for requests under way: nobody listens any more
