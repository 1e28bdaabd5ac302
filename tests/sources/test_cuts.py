"""Logs that are not whole are told from whole ones."""

from __future__ import annotations

import pytest

from phalanx.sources.cuts import begins_within, leaves_out
from phalanx.sources.dialects import Dialect

FRAME = '  File "/home/user/train.py", line 9, in main'


@pytest.mark.parametrize(
    ("lines", "is_cut"),
    [
        (["    main()", FRAME, "    step()", "KeyError: 'x'"], True),
        ([f"[rank1]: {FRAME}", "[rank1]:     step()", "[rank1]: KeyError: 'x'", "bye"], True),
        (["    raise ChildFailedError(", "torch.elastic.ChildFailedError: ", "=====", "train.py FAILED"], True),
        (["Traceback (most recent call last):", FRAME, "    step()", "KeyError: 'x'"], False),
        (["step 1", "Traceback (most recent call last):", FRAME, "    step()"], False),
        (["step 1", "step 2", "step 3", "step 4", FRAME], False),
        (["train.py:9: UserWarning: slow", "  warnings.warn(", "step 1", "step 2"], False),
        (["KeyError: 'x'"], False),
    ],
)
def test_a_log_that_begins_in_a_traceback(lines: list[str], is_cut: bool) -> None:
    assert begins_within(lines, Dialect()) is is_cut


@pytest.mark.parametrize(
    ("line", "is_cut"),
    [
        ("... 812 lines skipped ...", True),
        ("[... 812 lines omitted ...]", True),
        ("<snip: 40 lines>", True),
        ("<snip>", True),
        ("--- truncated 40 lines ---", True),
        ("  [Previous line repeated 40 more times]", False),
        ("3 batches skipped", False),
        ("40 lines skipped because they are empty", False),
    ],
)
def test_a_log_that_says_that_lines_were_left_out(line: str, is_cut: bool) -> None:
    assert leaves_out(f"step 1\n{line}\nstep 9\n".encode()) is is_cut


def test_the_rest_of_an_abort_is_the_end_of_a_longer_log() -> None:
    lines = ["terminate called after throwing an instance of 'c10::DistBackendError'", "  what():  x", "y", "z"]
    assert begins_within(lines, Dialect())
