"""The text for a terminal: short, safe, readable in a pipe."""

from __future__ import annotations

import io

from rich.console import Console

from phalanx.report import Format, print_text, render

from ..conftest import Diagnose
from ..model.test_report import OOM


def printed(report: object, *, everything: bool = False, terminal: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=100, highlight=False)
    print_text(report, everything=everything, console=console)  # type: ignore[arg-type]
    return file.getvalue()


def test_verdict_first_then_why_then_fix(diagnose: Diagnose) -> None:
    text = printed(diagnose(OOM))
    lines = text.splitlines()
    assert lines[0].startswith("✗ Rank 2 ")
    assert "[OOM001, fail.out-of-memory, " in text
    labels = [line.split("  ")[0] for line in lines if line[:3] in ("who", "why", "kin", "fix")]
    assert labels[:3] == ["who", "why", "kind"]
    assert any(label.startswith("fix 1") for label in labels)
    assert any("rank 2; ranks 0, 1, 3 suffered from it" in line for line in lines)


def test_plain_in_a_pipe(diagnose: Diagnose) -> None:
    text = printed(diagnose(OOM))
    assert "\x1b" not in text
    assert all(line == line.rstrip() and len(line) <= 110 for line in text.splitlines())


def test_colours_in_a_terminal(diagnose: Diagnose) -> None:
    assert "\x1b[" in printed(diagnose(OOM), terminal=True)


def test_terminal_codes_of_a_log_never_reach_the_terminal(diagnose: Diagnose) -> None:
    hostile = "[rank1]: \x1b]0;owned\x07\x1b[2J[bold red]x[/] torch.OutOfMemoryError: CUDA out of memory.\x1b[31m Tried to allocate 1 GiB\n[rank0]: a\n"
    text = printed(diagnose(hostile), everything=True, terminal=True)
    assert "owned" not in text
    assert "\x1b[2J" not in text
    assert "[bold red]x[/]" in text, "markup of a log is text"


def test_a_report_without_output_is_not_called_healthy(diagnose: Diagnose) -> None:
    report = diagnose({"issue.md": b"# It hangs\n\nMy PyTorch training hangs on two nodes.\n"})
    assert "Nothing to diagnose: no output of a program in 1 file." in printed(report)
    assert "Nothing wrong" not in printed(report) + render(report, Format.HTML)


def test_nothing_wrong(diagnose: Diagnose) -> None:
    assert printed(diagnose("epoch 1 step 1 loss 2\ntraining finished\n")).startswith("Nothing wrong found in 1 file")
