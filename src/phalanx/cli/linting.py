"""`phalanx check train.py`: the analysis of scripts asked for on the command line, done and printed.

It loads neither Typer nor Rich nor the checks of hosts: a single script is analysed in less time than those take to load.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from phalanx import private
from phalanx.lint import LintError, LintOptions, lint_paths
from phalanx.lint.fixes import repair_files
from phalanx.model import Report
from phalanx.report import Format, render
from phalanx.report.linted import print_linted

_WITH_VALUE = {"-f": "format", "--format": "format", "-o": "output", "--output": "output", "--select": "select", "--ignore": "ignore"}  # fmt: skip
_SWITCHES = {"-a": "all", "--all": "all", "--fix": "fix", "--diff": "diff"}


@dataclass(frozen=True, slots=True)
class LintRequest:
    """What is to be analysed and how the result is written."""

    paths: tuple[str, ...]
    form: Format = Format.TEXT
    output: Path | None = None
    everything: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fix: bool = False
    diff: bool = False

    def run(self) -> int:
        """Do it; the exit status: 0 nothing found, 1 findings, 2 it could not be done."""
        began = time.monotonic()
        try:
            options = LintOptions(self.select, self.ignore)
            checked = lint_paths(list(self.paths), options)
            if self.fix or self.diff:
                shown = repair_files(checked.repairs, write=self.fix)
                if self.diff:
                    sys.stdout.write(shown)
                    return 1 if shown else 0
                sys.stderr.write(shown)
                checked = lint_paths(list(self.paths), options) if shown else checked
            self._write(checked.report, (checked.files, checked.lines), time.monotonic() - began)
        except LintError as error:
            sys.stderr.write(f"phalanx: {error}\n")
            return 2
        except BrokenPipeError:
            raise
        except OSError as error:
            sys.stderr.write(f"phalanx: {error.filename or self.output}: {error.strerror}\n")
            return 2
        except KeyboardInterrupt:
            sys.stderr.write("phalanx: interrupted\n")
            return 130
        return _status(checked.report, self.paths)

    def _write(self, report: Report, amount: tuple[int, int], seconds: float) -> None:
        if self.form is Format.TEXT:
            if self.output is None:
                print_linted(report, seconds, amount, sys.stdout, everything=self.everything)
                sys.stdout.flush()
                return
            with private.open_new(self.output) as file:
                print_linted(report, seconds, amount, file, everything=self.everything)
            return
        document = render(report, self.form)
        if self.output is None:
            sys.stdout.write(document)
            sys.stdout.flush()
        else:
            private.write_text(self.output, document)
            sys.stderr.write(f"wrote {self.output}\n")


def _status(report: Report, paths: Sequence[str]) -> int:
    if report.findings:
        return 1
    named = {word for word in paths if not Path(word).is_dir()}
    return 2 if not report.read or named - set(report.read) - {str(Path(word)) for word in report.read} else 0


def with_scripts(report: Report, scripts: Sequence[str]) -> Report:
    """A report of hosts with the findings of the job's scripts behind its own; scripts that are elsewhere are skipped."""
    here = [word for word in scripts if word.endswith(".py") and Path(word).is_file()]
    if not here:
        return report
    try:
        found = lint_paths(here).report
    except LintError:
        return report
    return replace(
        report,
        findings=(*report.findings, *found.findings),
        not_checked=(*report.not_checked, *found.not_checked),
        read=(*report.read, *found.read),
    )


def is_script(word: str) -> bool:
    """Whether a word of the command line is source to analyse."""
    return word.endswith((".py", ".ipynb")) or Path(word).is_dir()


def lint_request(words: Sequence[str]) -> LintRequest | None:
    """The request of the words behind `check`; None if they ask for anything else, or are mistaken."""
    paths: list[str] = []
    values: dict[str, str] = {}
    switches: set[str] = set()
    rest = iter(words)
    for word in rest:
        name, mark, value = word.partition("=")
        if word in _SWITCHES:
            switches.add(_SWITCHES[word])
        elif word in _WITH_VALUE:
            values[_WITH_VALUE[word]] = next(rest, "")
        elif mark and name in _WITH_VALUE and name.startswith("--"):
            values[_WITH_VALUE[name]] = value
        elif word and not word.startswith("-") and is_script(word):
            paths.append(word)
        else:
            return None
    if not paths or values.get("format", "text") not in {form.value for form in Format} or "" in values.values():
        return None
    return LintRequest(
        tuple(paths),
        Format(values.get("format", "text")),
        Path(values["output"]) if "output" in values else None,
        "all" in switches,
        codes_of(values.get("select", "")),
        codes_of(values.get("ignore", "")),
        "fix" in switches,
        "diff" in switches,
    )


def codes_of(text: str) -> tuple[str, ...]:
    """The words of `--select` or `--ignore`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
