"""The verb `facts`: all sections at once, each in a thread with a time-out, so that a dead name server costs one section only.

The answer is one dictionary: section → facts; a section that failed is listed under `missing` with the reason.
"""

from __future__ import annotations

import os
import threading
import time

from . import serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Section = Callable[["Setting"], Any]

PATIENCE_S = 3.0


class Setting:
    """What the sections are told: the environment that the job would have, and what to look at."""

    def __init__(self, args: dict[str, Any]) -> None:
        self.args = args
        self.environment = dict(os.environ)
        self.environment.update(args.get("environment") or {})

    def listed(self, name: str) -> list[Any]:
        """A list among the arguments; empty if it was not given."""
        given = self.args.get(name)
        return list(given) if isinstance(given, (list, tuple)) else []


def sections() -> dict[str, Section]:
    """Every section there is, by name."""
    found: dict[str, Section] = {}
    for module in serve.modules():
        found.update(getattr(module, "FACTS", {}))
    return found


def facts(args: dict[str, Any], emit: Callable[[Any], None]) -> None:
    """Look at everything, or at `args["sections"]` only."""
    setting = Setting(args)
    wanted = setting.listed("sections")
    patience = float(args.get("patience") or PATIENCE_S)
    gathered: dict[str, Any] = {}
    missing: dict[str, str] = {}
    lock = threading.Lock()

    def run(name: str, section: Section) -> None:
        try:
            result = section(setting)
        except Exception as error:
            with lock:
                missing[name] = "%s: %s" % (type(error).__name__, error)
            return
        with lock:
            gathered[name] = result

    threads = {
        name: threading.Thread(target=run, args=(name, section), daemon=True)
        for name, section in sections().items()
        if not wanted or name in wanted
    }
    for thread in threads.values():
        thread.start()
    until = time.monotonic() + patience
    for name, thread in threads.items():
        thread.join(max(0.01, until - time.monotonic()))
        with lock:
            if thread.is_alive() and name not in gathered:
                missing[name] = "no answer within %g s" % patience
    with lock:
        emit(dict(gathered, missing=missing))


def clock(args: dict[str, Any], emit: Callable[[Any], None]) -> None:
    """The time of this host; whoever asks measures how long the way was."""
    emit({"time": time.time(), "monotonic": time.monotonic()})


VERBS = {"facts": facts, "clock": clock}
