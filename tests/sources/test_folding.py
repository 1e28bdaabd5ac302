"""Lines that a terminal broke at its width are joined; others are left as they are."""

from __future__ import annotations

import time

import pytest

from phalanx.sources.folding import Unfolding, width_of

TRACEBACK = [
    "[rank1]: Traceback (most recent call last):",
    '[rank1]:   File "/home/user/job/train.py", line 73, in <module>',
    "[rank1]:     main()",
    '[rank1]:   File "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 979, in _engine_run_backward',
    "[rank1]:     return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass",
    "[rank1]: RuntimeError: [/__w/pytorch/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:47021. "
    "This is typically caused by a remote worker crashing. Check the logs of the remote worker.",
]


def folded(lines: list[str], width: int) -> list[bytes]:
    return [line[at : at + width].encode() for line in lines for at in range(0, max(len(line), 1), width)]


@pytest.mark.parametrize("width", [80, 91, 100, 120, 132])
def test_folded_lines_are_told_and_joined(width: int) -> None:
    lines = folded(["step 10 loss 2.31", "", *TRACEBACK], width)
    assert width_of([lines]) == width
    unfolding = Unfolding(width)
    whole = b"".join(unfolding.take(line + b"\n") for line in lines) + unfolding.rest()
    assert whole.decode() == "\n".join(["step 10 loss 2.31", "", *TRACEBACK]) + "\n"


def test_a_joined_line_is_shown_with_the_number_of_its_first_part() -> None:
    lines = folded(TRACEBACK, 80)
    unfolding = Unfolding(80)
    for line in lines:
        unfolding.take(line + b"\n")
    unfolding.rest()
    begins = [number for number, line in enumerate(lines, 1) if line.startswith(b"[rank1]")]
    assert [unfolding.true_line(number) for number in range(1, len(TRACEBACK) + 1)] == begins


def test_a_line_of_just_that_width_does_not_swallow_the_next_beginning() -> None:
    unfolding = Unfolding(80)
    first, second = b"x" * 80 + b"\n", b'  File "train.py", line 9, in main\n'
    assert unfolding.take(first) + unfolding.take(second) == first + second
    assert unfolding.true_line(2) == 2


@pytest.mark.parametrize(
    "lines",
    [
        [f"step {number:5d} loss 2.31 " + "x" * 57 for number in range(40)],  # training, always as long
        ["=" * 80, "Configuration", "=" * 80, "model resnet", "-" * 80, "batch 32"],
        ["+" + "-" * 78 + "+", *("|" + " " * 60 + f"{number:3d}MiB |" + " " * 9 + "|" for number in range(9))],
        TRACEBACK,
        ["short"] * 9,
        [],
        # a paragraph that is broken between words: lines of all lengths up to the longest
        *[[("word " * 40)[: 80 - less] for less in (0, 2, 3, 5, 2, 4, 0, 3, 0, 6, 2)]],
    ],
)
def test_other_lines_are_not_folded(lines: list[str]) -> None:
    assert width_of([[line.encode() for line in lines]]) is None


def test_a_hostile_file_takes_no_time() -> None:
    lines = [b"a" * 120, b" " * 120, b'"' * 119 + b" ", b"File " + b'"' * 115] * 2000
    began = time.monotonic()
    width_of([lines])
    unfolding = Unfolding(120)
    whole = b"".join(unfolding.take(line + b"\n") for line in lines) + unfolding.rest()
    assert len(whole) > 120 * 8000
    assert time.monotonic() - began < 5
