"""`phalanx check CHECKPOINT`: the examination of checkpoints asked for on the command line, done and printed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from phalanx import private
from phalanx.checkpoint_files import CheckpointError, Examined, Options, against_checkpoint, examine, is_checkpoint
from phalanx.checkpoint_files.comparing import Expected
from phalanx.checkpoint_files.model_factory import expected_of_factory, is_factory
from phalanx.cli.progress import Progress
from phalanx.model import Report
from phalanx.report import Format, render
from phalanx.report.checkpoints import print_checkpoint

_WITH_VALUE = {
    "-f": "format",
    "--format": "format",
    "-o": "output",
    "--output": "output",
    "--against": "against",
    "--ranks": "ranks",
}
_SWITCHES = {"-a": "all", "--all": "all", "--values": "values", "--no-values": "no-values"}
# What no other kind of target is called like: where such a file is damaged, its name still says what it was.
_NAMES = (".pt", ".pth", ".ckpt", ".safetensors", ".distcp", ".keras", ".h5", ".hdf5", ".index")


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """What is to be examined and how the result is written."""

    paths: tuple[str, ...]
    form: Format = Format.TEXT
    output: Path | None = None
    everything: bool = False
    against: str | None = None
    ranks: int | None = None
    values: bool = True

    def run(self) -> int:
        """Do it; the exit status: 0 nothing wrong, 1 errors, 2 it could not be read, 3 only warnings."""
        began = time.monotonic()
        progress = Progress()
        try:
            options = Options(_expected(self.against), self.ranks, self.values)
            examined = [examine(Path(path), options, progress.say) for path in self.paths]
        except CheckpointError as error:
            progress.close()
            sys.stderr.write(f"phalanx: {error}\n")
            return 2
        except KeyboardInterrupt:
            progress.close()
            sys.stderr.write("phalanx: interrupted\n")
            return 130
        progress.close()
        try:
            self._write(examined, time.monotonic() - began)
        except BrokenPipeError:
            raise
        except OSError as error:
            sys.stderr.write(f"phalanx: cannot write {self.output or 'standard output'}: {error.strerror}\n")
            return 2
        return _status([one.report for one in examined])

    def _write(self, examined: Sequence[Examined], seconds: float) -> None:
        if self.form is Format.TEXT and self.output is None:
            self._print(examined, seconds, sys.stdout)
            sys.stdout.flush()
            return
        if self.form is Format.TEXT and self.output is not None:
            with private.open_new(self.output) as file:
                self._print(examined, seconds, file)
            return
        report = _joined([one.report for one in examined])
        if self.form is Format.JSON:
            document = json.dumps(_json(report, examined, seconds), indent=2, ensure_ascii=False) + "\n"
        else:
            document = render(report, self.form)
        if self.output is None:
            sys.stdout.write(document)
            sys.stdout.flush()
        else:
            private.write_text(self.output, document)
            sys.stderr.write(f"wrote {self.output}\n")

    def _print(self, examined: Sequence[Examined], seconds: float, out: Any) -> None:
        for number, one in enumerate(examined):
            out.write("\n" * (number > 0))
            print_checkpoint(one.report, one.summary, seconds, out, everything=self.everything)


def _expected(against: str | None) -> Expected | None:
    """The other side of a comparison: a checkpoint, or a model that the user's code makes."""
    if against is None:
        return None
    if Path(against).exists() or not is_factory(against):
        return against_checkpoint(Path(against))
    sys.stderr.write(f"phalanx: --against {against}: imports and calls your code, in a process of its own\n")
    sys.stderr.flush()
    return expected_of_factory(against)


def _joined(reports: Sequence[Report]) -> Report:
    first = reports[0]
    return replace(
        first,
        findings=tuple(sorted((one for report in reports for one in report.findings), key=lambda one: one.severity)),
        not_checked=tuple(one for report in reports for one in report.not_checked),
        read=tuple(one for report in reports for one in report.read),
    )


def _json(report: Report, examined: Sequence[Examined], seconds: float) -> dict[str, Any]:
    """The contract's form, with `checkpoints`: what each holds."""
    return {**report.to_json(), "checkpoints": [one.summary for one in examined], "seconds": round(seconds, 2)}


def _status(reports: Sequence[Report]) -> int:
    severities = {finding.severity for report in reports for finding in report.findings}
    if "error" in severities:
        return 1
    if any(not report.is_complete for report in reports):
        return 2
    return 3 if severities else 0


def is_checkpoint_word(word: str) -> bool:
    """Whether a word of the command line is a checkpoint, by content; a file that is not there, by its name."""
    if word.endswith((".py", ".ipynb")) or word.startswith("-"):
        return False
    return is_checkpoint(Path(word)) or (not Path(word).is_dir() and word.endswith(_NAMES))


def checkpoint_request(words: Sequence[str]) -> CheckpointRequest | None:
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
        elif word and is_checkpoint_word(word):
            paths.append(word)
        else:
            return None
    if not paths or values.get("format", "text") not in {form.value for form in Format} or "" in values.values():
        return None
    if not values.get("ranks", "1").isdigit() or int(values.get("ranks", "1")) < 1:
        return None
    return CheckpointRequest(
        tuple(paths),
        Format(values.get("format", "text")),
        Path(values["output"]) if "output" in values else None,
        "all" in switches,
        values.get("against"),
        int(values["ranks"]) if "ranks" in values else None,
        "no-values" not in switches,
    )
