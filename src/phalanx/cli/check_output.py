"""Writes what `phalanx check` found: to the terminal, to a file, or as the commands that fix it."""

from __future__ import annotations

import json
import os
import site
import sys
from pathlib import Path

import typer
from rich.console import Console

from phalanx import private
from phalanx.model import Report
from phalanx.preflight.fix_script import write_fix_script
from phalanx.report import Format, print_text, render
from phalanx.report.checked import print_checked


def write_checked(
    report: Report, form: Format, output: Path | None, everything: bool, fix_script: bool, seconds: float
) -> None:
    """In the form that was asked for; raises OSError where the file cannot be written."""
    if fix_script:
        document = write_fix_script(report)
    elif form is Format.TEXT:
        if output is None:
            _print(report, seconds, everything, Console(highlight=False))
        else:
            with private.open_new(output) as file:
                _print(report, seconds, everything, Console(file=file, highlight=False))
        return
    elif form is Format.JSON:
        document = json.dumps({**report.to_json(), "seconds": round(seconds, 2)}, indent=2, ensure_ascii=False) + "\n"
    else:
        document = render(report, form)
    if output is None:
        sys.stdout.write(document)
    else:
        private.write_text(output, document)
        typer.echo(f"wrote {output}", err=True)


def _print(report: Report, seconds: float, everything: bool, console: Console) -> None:
    if everything and report.findings:
        print_text(report, everything=True, console=console)
    else:
        print_checked(report, seconds, console)


def say_missing_gate() -> None:
    """`PHALANX=1` does nothing, and cannot say so, where the package was installed before it brought its hook."""
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    wanted = os.environ.get("PHALANX", "0") not in ("", "0")
    if wanted and not any(Path(folder, "phalanx_gate.pth").is_file() for folder in folders):
        typer.echo(
            "phalanx: PHALANX is set, but this environment has no phalanx_gate.pth, so no rank is watched: install phalanx again "
            "(`pip install -e .` in a clone)",
            err=True,
        )
