"""Stacks of living processes, and native deaths."""

from __future__ import annotations

from phalanx.model import EventKind

from .test_tracebacks import events


def test_faulthandler() -> None:
    text = (
        "Current thread 0x00007f5c2b7fe740 (most recent call first):\n"
        '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 2501 in all_reduce\n'
        '  File "/home/user/train.py", line 88 in train\n\nother\n'
    )
    (event,) = events(text, "rank1.log")
    assert event.kind is EventKind.STACK
    assert event.rank == 1
    assert [frame.function for frame in event.frames] == ["train", "all_reduce"]


def test_py_spy() -> None:
    text = 'Process 4242: python train.py\n\nThread 4242 (idle): "MainThread"\n    wait (threading.py:331)\n    train (train.py:88)\n'
    (event,) = events(text)
    assert event.user_frame is not None
    assert (event.user_frame.file, event.user_frame.line) == ("train.py", 88)


def test_native_backtraces_are_not_python_stacks() -> None:
    assert (
        events("Exception raised from foo at bar.cpp:1 (most recent call first):\nframe #0: c10::Error::Error\n") == []
    )


def test_uncaught_native_exception() -> None:
    (event,) = events(
        "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: device-side assert\n"
    )
    assert event.text == "c10::Error: CUDA error: device-side assert"


def test_fatal_python_error() -> None:
    text = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
        '  File "/home/user/train.py", line 12 in crash\n  File "/home/user/train.py", line 40 in <module>\n'
    )
    event = next(event for event in events(text) if event.kind is EventKind.EXCEPTION)
    assert event.text == "Fatal Python error: Segmentation fault"
    assert event.user_frame is not None
    assert event.user_frame.line == 12


def test_build_errors() -> None:
    text = "src/ops.cc:40:10: fatal error: mpi.h: No such file or directory\ncompilation terminated.\nERROR: Failed building wheel for horovod\n"
    assert [event.data["type"] for event in events(text)] == ["build", "build"]
    assert events("a fatal error: in somebody's prose\n") == []


def test_the_stack_of_a_crash_is_that_of_the_current_thread() -> None:
    text = (
        "Fatal Python error: Bus error\n\nThread 0x00007fae (most recent call first):\n"
        '  File "/usr/lib/python3.11/threading.py", line 331 in wait\n\n'
        "Current thread 0x00007faf (most recent call first):\n"
        '  File "/home/user/train.py", line 58 in fetch\n  File "/home/user/train.py", line 84 in main\n\n'
        "Extension modules: numpy (total: 1)\n"
    )
    crash = next(event for event in events(text) if event.kind is EventKind.EXCEPTION)
    assert [(frame.function, frame.line) for frame in crash.frames] == [("main", 84), ("fetch", 58)]
