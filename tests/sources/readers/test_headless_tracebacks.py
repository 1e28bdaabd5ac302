"""Tracebacks whose first line is missing."""

from __future__ import annotations

from phalanx.model import EventKind

from .test_tracebacks import events

FRAMES = """\
  File "train.py", line 88, in main
    dist.all_gather(parts, mine)
  File "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", line 1185, in all_gather
    work = _default_pg.allgather([tensor_list], [tensor])
"""
FINAL = "RuntimeError: All tensor operands to scatter/gather must have the same size\n"


def test_frames_and_the_exception() -> None:
    (event,) = events("Here is the stack:\n" + FRAMES + FINAL)
    assert event.kind is EventKind.EXCEPTION
    assert event.text == FINAL.strip()
    assert event.user_frame is not None
    assert (event.user_frame.line, event.user_frame.source) == (88, "dist.all_gather(parts, mine)")


def test_without_indentation() -> None:
    flat = "".join(line.lstrip() + "\n" for line in FRAMES.splitlines())
    (event,) = events(flat + FINAL)
    assert [frame.function for frame in event.frames] == ["main", "all_gather"]


def test_a_traceback_with_its_first_line_is_read_once() -> None:
    (event,) = events("Traceback (most recent call last):\n" + FRAMES + FINAL)
    assert event.text == FINAL.strip()


def test_frames_that_no_exception_ends_tell_nothing() -> None:
    assert not events("from user code:\n" + FRAMES + 'Set TORCH_LOGS="+dynamo" for more\n\n' + FINAL)
