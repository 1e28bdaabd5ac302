"""The public names, pinned: what is here is promised, what is not may change."""

from __future__ import annotations

import inspect
import subprocess
import sys

import phalanx


def test_what_a_call_offers() -> None:
    offered = {name for name in vars(phalanx.Call) if not name.startswith("_")}
    assert {"status", "done", "wait", "results", "cancel", "logs"} <= offered
    assert list(inspect.signature(phalanx.Call.logs).parameters) == ["self", "rank", "follow"]
    offered = {name for name in vars(phalanx.Function) if not name.startswith("_")}
    assert {"submit", "local", "on", "options", "plan"} <= offered


def test_what_a_failure_tells() -> None:
    failed = phalanx.JobFailed("x", rank=2, host="a", victims=(0, 1))
    assert (failed.verdict, failed.rank, failed.host, failed.victims, failed.bundle) == (None, 2, "a", (0, 1), None)
    for kind in (phalanx.JobFailed, phalanx.CannotStart, phalanx.CallCancelled, phalanx.NotFinished):
        assert issubclass(kind, phalanx.PhalanxError)
    assert issubclass(phalanx.JobTimedOut, phalanx.JobFailed)


def test_importing_phalanx_stays_light() -> None:
    code = "import sys, phalanx; print([m for m in ('cloudpickle', 'psutil', 'rich', 'phalanx.calls') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_the_plain_function_stays_within_reach() -> None:
    @phalanx.function(workers=2)
    def double(x: int) -> int:
        """Twice as much."""
        return 2 * x

    assert double.local(4) == 8
    assert double.__name__ == "double"
    assert double.__doc__ == "Twice as much."
    assert double.options(workers=5).settings.spec.size == 5
    assert double.settings.spec.size == 2
