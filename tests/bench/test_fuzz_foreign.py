"""A slice of the fuzz of everything that may come from somebody else: manifests, recordings, dumps, frames, output."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from ..made_traces import BENCH

_SECONDS = 24.0  # of processor time, for each of five


@pytest.fixture(autouse=True)
def bench_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    sys.modules.pop("fuzz_foreign", None)


@pytest.mark.timeout(900)  # processor time is counted, and machines are shared
@pytest.mark.parametrize("target", ["manifests", "recordings", "dumps", "frames", "redactor"])
def test_a_slice_is_clean(target: str) -> None:
    from fuzz_foreign import fuzz  # type: ignore[import-not-found]

    count, failed = fuzz(target, seed=7, seconds=_SECONDS)
    assert failed == []
    assert count > 20


def test_the_checks_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    import fuzz_foreign

    monkeypatch.setattr("phalanx.run.sealing._TEXTS", ())
    assert any("holds a secret" in what for what in fuzz_foreign.fuzz("recordings", 0, 3.0)[1])
    monkeypatch.setattr("fuzz_foreign.open_recording", lambda bundle: [][0])
    assert any("IndexError" in what for what in fuzz_foreign.fuzz("recordings", 0, 0.5)[1])
