"""A pytest plugin: a test, or a function in a test, runs on several ranks of this machine.

    def test_sum(phalanx_ranks):
        assert phalanx_ranks(4)(train_one_step, 0.1) == [1.0] * 4     # every rank's result

    @pytest.mark.phalanx_ranks(4)
    def test_whole(tmp_path):                                        # the test itself, on four ranks
        ...

A failure shows the traceback of the rank that broke the job, never that of a rank that only waited for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from phalanx.calls.errors import JobFailed

# A test that hangs should say so within the patience of the person who waits for it.
TIMEOUT = 300.0


class Ranks:
    """Runs functions on several ranks: `ranks(4)(function, *arguments)` gives every rank's result."""

    def __init__(self, count: int = 1, **settings: Any) -> None:
        self._count = count
        self._settings = {"timeout": TIMEOUT, "on_stall": "abort", **settings}

    def __call__(self, count: int, **settings: Any) -> Callable[..., list[Any]]:
        """What runs a function on `count` ranks; settings are those of `@phalanx.function`."""
        return Ranks(count, **{**self._settings, **settings}).run

    def run(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> list[Any]:
        """Call it on every rank and fail the test with the culprit's own traceback if a rank fails."""
        from phalanx.calls.decorator import function as on_workers
        from phalanx.calls.errors import JobFailed

        try:
            call = on_workers(workers=self._count, **self._settings)(function)
            results: list[Any] = call(*arguments, **named)
        except JobFailed as failed:
            raise _failure(failed) from None
        return results


@pytest.fixture
def phalanx_ranks() -> Ranks:
    """`phalanx_ranks(4)(function, *arguments)`: the function on four ranks of this machine."""
    return Ranks()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "phalanx_ranks(n, **settings): run the test function on n ranks of this machine")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Run a marked test on ranks in place of here."""
    marker = pyfuncitem.get_closest_marker("phalanx_ranks")
    if marker is None:
        return (yield)
    if not marker.args or not isinstance(marker.args[0], int):
        pytest.fail("@pytest.mark.phalanx_ranks needs the number of ranks: phalanx_ranks(4)", pytrace=False)
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names if name != "phalanx_ranks"}
    plain = pyfuncitem.obj
    runner = Ranks()(marker.args[0], **marker.kwargs)

    def here(**_: Any) -> None:
        runner(plain, **arguments)

    pyfuncitem.obj = here
    try:
        return (yield)
    finally:
        pyfuncitem.obj = plain


def _failure(failed: JobFailed) -> BaseException:
    """The culprit's own exception where it raised one, with the verdict as a note; else a failure with the verdict."""
    headline = (failed.verdict or {}).get("headline") or str(failed)
    own = failed.__cause__
    if own is None:
        return pytest.fail.Exception(headline, pytrace=False)
    own.add_note(f"phalanx: {headline}")
    return own
