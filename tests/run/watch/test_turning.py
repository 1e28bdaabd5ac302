"""Loops that get nowhere, told from those that do, from a thread beside them in the same process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from phalanx.run.watch.inside.phalanx_turning import CHANGES, TURNS, UNKNOWN, turning_of

HEAD = "import time, itertools, threading\n"


@pytest.fixture
def verdict(tmp_path: Path) -> Iterator[Callable[[str], int]]:
    """What is found of code that runs in a thread until `stop` says so."""
    stop: list[int] = []
    threads: list[threading.Thread] = []

    def look(text: str) -> int:
        code: CodeType = compile(HEAD + text, str(tmp_path / "train.py"), "exec")
        scope: dict[str, Any] = {"stop": stop, "__name__": "__main__"}
        thread = threading.Thread(target=exec, args=(code, scope), daemon=True)
        threads.append(thread)
        thread.start()
        time.sleep(0.1)
        assert thread.ident is not None
        return turning_of(thread.ident)

    yield look
    stop.append(1)
    for thread in threads:
        thread.join(10)


TURNING = {
    "one line of a module": "while not stop: pass",
    "one line of a function": "def wait():\n    while not stop: pass\nwait()",
    "a flag that nobody sets": "class Flag:\n    is_set = False\nflag = Flag()\nflag.set = False\nwhile not flag.set:\n    if stop: break",
    "a solution between two values": (
        "def solve(a):\n    x = error = 1.0\n    while error > 1e-6 and not stop:\n        new = a / x\n"
        "        error = abs(new - x)\n        x = new\nsolve(2.0)"
    ),
    "a last line that comes again": "text = ''\nwhile not stop:\n    text = ''.strip()\n    if text: break",
}
CHANGING = {
    "a count": "n = 0\nwhile not stop: n += 1",
    "a loop over many": "def count():\n    for n in range(10**12):\n        if stop: break\ncount()",
    "an attribute": "class Counter: pass\nc = Counter()\nc.n = 0\nwhile not stop: c.n += 1",
    "a sum": "def add():\n    total = 0.0\n    while not stop:\n        total += 0.5\nadd()",
}
NOT_KNOWN = {
    "an iterator": "it = itertools.count()\nwhile not stop: next(it)",
    "functions that are called": "def step(n):\n    for _ in range(1000): n += 1\n    return n\nwhile not stop: step(1)",
    "a long call": "e = threading.Event()\nwhile not stop: time.sleep(3)",
    "a list that grows": "seen = []\nwhile not stop and len(seen) < 10**7: seen.append(1)",
}


@pytest.mark.parametrize("text", TURNING.values(), ids=TURNING)
def test_a_loop_that_comes_back_to_where_it_was_turns(verdict: Callable[[str], int], text: str) -> None:
    assert verdict(text) == TURNS


@pytest.mark.parametrize("text", CHANGING.values(), ids=CHANGING)
def test_a_loop_whose_variables_go_on_does_not(verdict: Callable[[str], int], text: str) -> None:
    assert verdict(text) == CHANGES


@pytest.mark.parametrize("text", NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_what_cannot_be_compared_is_not_known(verdict: Callable[[str], int], text: str) -> None:
    assert verdict(text) == UNKNOWN


def test_what_the_script_computes_is_not_asked_for(verdict: Callable[[str], int], tmp_path: Path) -> None:
    """Attributes that a class makes when they are asked for may load, count or connect."""
    asked = tmp_path / "asked"
    verdict(
        "class Lazy:\n"
        f"    def __getattr__(self, name): open({str(asked)!r}, 'a').write(name + '\\n'); return 1\n"
        "lazy = Lazy()\n"
        "while not stop: kept = lazy\n"
    )
    assert not asked.exists()
