"""Exceptions that a person quotes or names."""

from __future__ import annotations

from phalanx.diagnose.told_exceptions import exception_in, exception_named


def test_the_first_that_is_quoted_counts() -> None:
    event = exception_in(
        "report.md", ["it failed", "[rank1]: torch.cuda.OutOfMemoryError: CUDA out of memory", "ValueError: no"]
    )
    assert event is not None
    assert (event.data["type"], event.text) == ("OutOfMemoryError", "torch.cuda.OutOfMemoryError: CUDA out of memory")


def test_a_name_in_the_title_is_enough() -> None:
    event = exception_named("report.md", "It fails at startup due to FileExistsError")
    assert event is not None
    assert event.text == "FileExistsError"


def test_an_error_in_general_is_none() -> None:
    assert exception_named("report.md", "Error when I start two processes") is None
    assert exception_in("report.md", ["an error occurred"]) is None
