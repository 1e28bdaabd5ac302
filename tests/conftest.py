"""Shared by the tests: a shorthand from log text to a report."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from phalanx.diagnose import diagnose_inputs
from phalanx.knowledge import load_rules
from phalanx.model import Report
from phalanx.sources import from_text

Diagnose = Callable[..., Report]


@pytest.fixture(scope="session")
def diagnose() -> Diagnose:
    """`diagnose("text")` for one merged log, `diagnose({"rank0.log": "…"})` for several files."""

    def run(files: str | bytes | dict[str, str | bytes]) -> Report:
        named = files if isinstance(files, dict) else {"job.log": files}
        return diagnose_inputs([from_text(name, text) for name, text in named.items()], load_rules())

    return run
