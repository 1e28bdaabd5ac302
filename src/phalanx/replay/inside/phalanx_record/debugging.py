"""Stops a replay in Python's debugger: at a condition, at the first difference, at the end, after an exception."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any

from .places import users_frame
from .settings import Settings


class Debugging:
    """`--pdb` and `--break`. The condition is the user's own, typed on the command line."""

    def __init__(self, settings: Settings) -> None:
        self._is_on = settings.debugger
        self._condition = compile(settings.condition, "<--break>", "eval") if settings.condition else None
        self._rank = settings.rank
        self._was_true = False

    def at_step(self, step: int) -> None:
        """A step begins."""
        self._ask({"step": step, "rank": self._rank, "call": -1, "op": "", "group": ""})

    def at_call(self, step: int, line: dict[str, Any]) -> None:
        """A collective is entered."""
        self._ask({"step": step, "rank": self._rank, "call": line["n"], "op": line["op"], "group": line["g"]})

    def _ask(self, names: dict[str, Any]) -> None:
        if self._condition is None:
            return
        is_true = bool(eval(self._condition, {"__builtins__": {}}, names))  # noqa: S307  (typed by the user, as pdb's are)
        if is_true and not self._was_true:
            self._stop("the condition holds: " + ", ".join(f"{name}={value!r}" for name, value in names.items()))
        self._was_true = is_true

    def at_difference(self, what: str) -> None:
        """The replay and the recording part."""
        if self._is_on:
            self._stop(f"first difference: {what}")

    def at_end(self, why: str) -> None:
        """The recording has no more, and the replay is about to end: there is no next line to stop at."""
        frame = users_frame() if self._is_on else None
        if frame is not None:
            import pdb

            sys.settrace(None)
            sys.stdout.flush()
            print(f"phalanx: {why}", file=sys.stderr, flush=True)
            debugger = pdb.Pdb(nosigint=True)
            debugger.reset()
            debugger.interaction(frame, None)

    def after(self, trace: TracebackType | None) -> None:
        """The script raised an exception."""
        if self._is_on and trace is not None:
            import pdb

            pdb.post_mortem(trace)

    def _stop(self, why: str) -> None:
        import pdb

        frame = users_frame()
        if frame is None:
            return
        sys.stdout.flush()
        print(f"phalanx: {why}", file=sys.stderr, flush=True)
        debugger = pdb.Pdb(nosigint=True)
        debugger.reset()
        outer: FrameType | None = frame
        while outer is not None:
            outer.f_trace = debugger.trace_dispatch
            debugger.botframe = outer
            outer = outer.f_back
        debugger.set_next(frame)  # the next line of the user's own: set_trace would stop in whatever is called next
        sys.settrace(debugger.trace_dispatch)
