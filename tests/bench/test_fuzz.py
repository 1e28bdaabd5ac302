"""The fuzz run: a few of its cases pass, a case can be made again, and its checks can fail."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from ..conftest import Diagnose
from ..made_traces import BENCH

_CASES = 25


@pytest.fixture(autouse=True)
def bench_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    for name in ("fuzz_diagnose", "fuzz_cases", "fuzz_checks"):
        sys.modules.pop(name, None)


def test_some_cases(tmp_path: Path) -> None:
    from fuzz_diagnose import run_case  # type: ignore[import-not-found]

    wrong = {number: run_case(7, number, tmp_path / str(number)) for number in range(_CASES)}
    assert not {number: what for number, what in wrong.items() if what}


def test_a_case_can_be_made_again(tmp_path: Path) -> None:
    from fuzz_cases import make_case  # type: ignore[import-not-found]

    for name in ("one", "two"):
        make_case(Random("0/3"), tmp_path / name)
    one, two = (
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file()
        }
        for name in ("one", "two")
    )
    assert one
    assert one == two


def test_what_a_terminal_acts_on_is_seen(diagnose: Diagnose) -> None:
    from fuzz_checks import check_outputs  # type: ignore[import-not-found]

    report = diagnose("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    check_outputs(report)
    (verdict, *others) = report.findings
    hostile = replace(report, findings=(replace(verdict, summary="\x9b31mred"), *others))
    with pytest.raises(AssertionError, match="holds"):
        check_outputs(hostile)
