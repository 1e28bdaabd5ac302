"""Tracebacks in Rich's boxes, drawn by Rich itself."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.traceback import Traceback

from phalanx.model import EventKind

from .test_tracebacks import events


def _check(batch: list[float]) -> None:
    assert all(value < 1e30 for value in batch), "bad batch: a value is not finite"


def _step() -> None:
    _check([1.0, float("inf")])


def _drawn(width: int, *, ascii_only: bool = False) -> str:
    out = StringIO()
    console = Console(file=out, width=width, legacy_windows=False, force_terminal=False)
    try:
        _step()
    except AssertionError:
        console.print(Traceback(show_locals=not ascii_only))
    text = out.getvalue()
    for drawn, plain in ("╭+", "╮+", "╰+", "╯+", "─-", "│|", "❱>") if ascii_only else ():
        text = text.replace(drawn, plain)
    return text


def test_frames_and_exception() -> None:
    (event,) = events(_drawn(120))
    assert event.kind is EventKind.EXCEPTION
    assert event.text == "AssertionError: bad batch: a value is not finite"
    assert [frame.function for frame in event.frames][-2:] == ["_step", "_check"]
    assert event.frames[-1].source.startswith("assert all(")
    assert event.frames[-1].file.endswith("test_boxed_tracebacks.py")


def test_narrow_and_without_signs_of_its_own() -> None:
    (event,) = events(_drawn(100, ascii_only=True))
    assert event.data["type"] == "AssertionError"
    assert event.frames[-1].function == "_check"


def test_marked_by_rank() -> None:
    text = "".join(f"[rank2]: {line}\n" for line in _drawn(110).splitlines())
    (event,) = events("[rank0]: step 1 loss 0.3\n" + text)
    assert event.rank == 2


def test_messages_that_are_broken_are_joined() -> None:
    text = _drawn(110).rsplit("AssertionError", 1)[0]
    message = (
        "RuntimeError: [/__w/gloo/transport/tcp/pair.cc:553] Connection closed by peer of this rank and of the others\n"
        "[127.0.0.1]:2470. This is typically caused by a remote worker crashing.\nstep 3 loss 0.2\n"
    )
    (event,) = events(text + message)
    assert event.text.endswith("a remote worker crashing.")


def test_a_box_that_is_cut_off_says_nothing() -> None:
    assert events("\n".join(_drawn(120).splitlines()[:6])) == []
