"""A diagnosis asked for on the command line: done, written and told by a status.

It needs neither Typer nor Rich to be loaded, which takes longer than reading a small log. `plain_request` understands the
common forms of the command; all else, mistakes and `--help` included, is left to Typer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from phalanx import private
from phalanx.cli.lint_link import with_script_rule
from phalanx.report import Format, print_text, render
from phalanx.sources.patience import WHOLE

if TYPE_CHECKING:
    from rich.progress import Progress

    from phalanx.model import Report

_WITH_VALUE = {"-f": "format", "--format": "format", "-o": "output", "--output": "output"}


@dataclass(frozen=True, slots=True)
class Request:
    """What `phalanx diagnose` is asked for."""

    paths: tuple[str, ...]
    form: Format = Format.TEXT
    output: Path | None = None
    everything: bool = False
    time_limit: float | None = WHOLE

    def run(self) -> int:
        """Do it; the exit status: 0 nothing wrong, 1 findings, 2 it could not be done, 130 interrupted."""
        try:
            report = _with_progress(list(self.paths), self.time_limit)
        except FileNotFoundError as error:
            return _told(str(error), 2)
        except KeyboardInterrupt:
            return _told("interrupted", 130)
        return self.conclude(with_script_rule(report))

    def conclude(self, report: Report) -> int:
        """Write a report that is there; the exit status."""
        try:
            self._write(report)
        except BrokenPipeError:
            raise
        except OSError as error:
            if self.output is None:
                raise
            return _told(f"cannot write {self.output}: {error.strerror}", 2)
        return _status(report)

    def _write(self, report: Report) -> None:
        if self.form is Format.TEXT:
            if self.output is None:
                print_text(report, everything=self.everything)
                return
            from rich.console import Console

            with private.open_new(self.output) as file:
                print_text(report, everything=self.everything, console=Console(file=file, width=110))
            return
        document = render(report, self.form)
        if self.output is None:
            sys.stdout.write(document)
            sys.stdout.flush()  # here, where a reader that went away is understood
        else:
            private.write_text(self.output, document)
            sys.stderr.write(f"wrote {self.output}\n")


def plain_request(words: Sequence[str]) -> Request | None:
    """The request of these words behind `diagnose`; None for what only the whole parser understands or refuses."""
    paths: list[str] = []
    values: dict[str, str] = {}
    everything = False
    rest = iter(words)
    for word in rest:
        name, mark, value = word.partition("=")
        if word == "-" or (word and not word.startswith("-")):
            paths.append(word)
        elif word in ("-a", "--all"):
            everything = True
        elif word in _WITH_VALUE or (mark and name in ("--format", "--output")):
            values[_WITH_VALUE[name]] = value if mark else next(rest, "")
        else:
            return None
    form = values.get("format", "text")
    if not paths or form not in tuple(Format) or not all(values.values()):
        return None
    output = Path(values["output"]) if "output" in values else None
    return Request(tuple(paths), Format(form), output, everything)


def _told(what: str, status: int) -> int:
    sys.stderr.write(f"phalanx: {what}\n")
    return status


def _with_progress(paths: list[str], time_limit: float | None) -> Report:
    from phalanx.diagnosis import diagnose_paths

    if not sys.stderr.isatty():
        return diagnose_paths(paths, time_limit=time_limit)
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=_total_bytes(paths))
        return diagnose_paths(paths, _advance(bar, task), time_limit=time_limit)


def _advance(bar: Progress, task: object) -> Callable[[int], None]:
    return lambda count: bar.advance(task, count)  # type: ignore[arg-type]


def _total_bytes(paths: list[str]) -> float | None:
    """The size of what is to be read; None where it cannot be known beforehand."""
    total = 0
    for given in paths:
        path = Path(given)
        if given == "-" or not path.exists():
            return None
        files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
        total += sum(one.stat().st_size for one in files)
    return total


def _status(report: Report) -> int:
    if report.verdict is not None or any(one.verdict for _, one in report.jobs):
        return 1
    return 0 if report.read else 2
