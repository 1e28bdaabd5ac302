"""Shared by the tests: a shorthand from log text to a report, and no skipping where `make test` has installed all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from typing import TypeVar

import pytest

from phalanx.diagnosis import diagnose_inputs
from phalanx.knowledge import load_rules
from phalanx.model import Report
from phalanx.sources import from_text

Diagnose = Callable[..., Report]
R = TypeVar("R", pytest.TestReport, pytest.CollectReport)
# `make test` sets this as root, when it installs what the tests need. kubectl is not in Debian.
IS_WHOLE = os.environ.get("PHALANX_TESTS") == "whole"
# Ranks of a test look for each other on this machine, and send nothing to its network. Beds have networks of their own.
os.environ["PHALANX_CHECK_LINK"] = "0"
_INSTALLABLE = re.compile(r"\bneeds?\b(?! kubectl)|\b(?:pip|apt-get) install\b")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _unskipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _unskipped((yield))


def _unskipped(report: R) -> R:
    """A skip for want of a package is a failure where all packages are there: the test would never run again, unseen."""
    if IS_WHOLE and report.skipped and isinstance(report.longrepr, tuple) and _INSTALLABLE.search(report.longrepr[2]):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be missing: {report.longrepr[2]}"
    return report


@pytest.fixture(scope="session")
def diagnose() -> Diagnose:
    """`diagnose("text")` for one merged log, `diagnose({"rank0.log": "…"})` for several files."""

    def run(files: str | bytes | dict[str, str | bytes]) -> Report:
        named = files if isinstance(files, dict) else {"job.log": files}
        return diagnose_inputs([from_text(name, text) for name, text in named.items()], load_rules())

    return run
