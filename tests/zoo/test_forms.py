"""The verdict on a log does not depend on what a collector, an editor or a page put around its lines."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths
from phalanx.zoo.reading import load_zoo

FAULTS = Path(__file__).parents[2] / "faults"
EVERY = 6  # of the faults whose logs may be looked at: enough to see a reader that no longer takes a form


def _lines(wrap: Callable[[int, str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(wrap(number, line) for number, line in enumerate(text.split("\n"), 1))


def _folded(line: str, width: int) -> str:
    return "\n".join(line[at : at + width] for at in range(0, max(len(line), 1), width))


def _stamp(number: int) -> str:
    return f"2026-11-17T10:{number // 60 % 60:02d}:{number % 60:02d}.5Z"


FORMS: dict[str, Callable[[str], str]] = {
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "collected": _lines(lambda number, line: f"{_stamp(number)} {line}" if line else line),
    "docker": _lines(lambda n, line: json.dumps({"log": line + "\n", "stream": "stderr", "time": _stamp(n)})),
    "journald": _lines(lambda n, line: f"Nov 17 05:{n // 60 % 60:02d}:{n % 60:02d} node1 bash[4711]: {line}"),
    "times": _lines(lambda n, line: f"[2026-11-17 05:{n // 60 % 60:02d}:{n % 60:02d}] {line}"),
    "numbers": _lines(lambda number, line: f"{number:6d}\t{line}"),
    "indent": _lines(lambda _, line: f"    {line}"),
    "quote": _lines(lambda _, line: f"> {line}"),
    "page": html.escape,
    "narrow": _lines(lambda _, line: _folded(line, 80)),
    "wide": _lines(lambda _, line: _folded(line, 132)),
    "logger": _lines(lambda n, line: f"{'INFO' if n % 3 else 'ERROR'}:root:{line}"),
    "loguru": _lines(lambda n, line: f"2026-11-17 05:{n // 60 % 60:02d}:{n % 60:02d}.123 | INFO     | run:pump:118 - {line}"),
    "bar": _lines(lambda _, line: f"| {line}"),
    "compose": _lines(lambda _, line: f"trainer_1  | {line}"),
    "cloud": _lines(lambda n, line: f"I {_stamp(n)} workerpool0-0 {line}"),
    "one host": _lines(lambda _, line: f"10.0.0.5: {line}"),
    "one task": _lines(lambda _, line: f"0: {line}"),
    "foreman": _lines(lambda n, line: f"05:{n // 60 % 60:02d}:{n % 60:02d} train.1 | {line}"),
}  # fmt: skip
# What is cut off may cost the verdict, but accuses nobody that the whole log does not accuse.
CUTS: dict[str, Callable[[list[str]], list[str]]] = {
    "tail -n 60": lambda lines: lines[-60:],
    "middle": lambda lines: [*lines[:20], f"... {len(lines)} lines skipped ...", *lines[-30:]],
}


def _logs() -> list[Path]:
    names = sorted(fault.name for fault in load_zoo(FAULTS) if fault.split == "train")
    recorded = [list((FAULTS / name / "recorded").rglob("*")) for name in names]
    return [files[0] for files in recorded if len(files) == 1 and files[0].suffix == ".log"][::EVERY]


def _verdict(path: Path) -> tuple[str | None, tuple[int, ...]]:
    findings = diagnose_paths([str(path)]).findings
    return (findings[0].symptom, findings[0].culprit_ranks) if findings else (None, ())


@pytest.mark.parametrize("form", sorted(FORMS))
def test_the_form_of_a_log_changes_no_verdict(tmp_path: Path, form: str) -> None:
    logs = _logs()
    assert len(logs) >= 10
    changed = {}
    for log in logs:
        wrapped = tmp_path / log.name
        wrapped.write_text(FORMS[form](log.read_text(encoding="utf-8")), encoding="utf-8", newline="")
        plain, other = _verdict(log), _verdict(wrapped)
        if plain != other:
            changed[log.parent.parent.name] = (plain, other)
    assert changed == {}


@pytest.mark.parametrize("cut", sorted(CUTS))
def test_what_was_cut_off_accuses_nobody(tmp_path: Path, cut: str) -> None:
    accused = {}
    for log in _logs():
        part = tmp_path / log.name
        part.write_text("\n".join(CUTS[cut](log.read_text(encoding="utf-8").splitlines())) + "\n", encoding="utf-8")
        (_, whole), (_, others) = _verdict(log), _verdict(part)
        if not set(others) <= set(whole):
            accused[log.parent.parent.name] = (whole, others)
    assert accused == {}
