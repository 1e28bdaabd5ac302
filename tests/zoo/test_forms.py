"""The verdict on a recorded log stays when only its form changes: folded by a terminal, escaped by a page, numbered, stamped, in a collector's JSON.

Ablation cannot show what the readers of these forms are worth, because no log was recorded in them.
"""

from __future__ import annotations

import html
import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Diagnose

FAULTS = Path(__file__).parents[2] / "faults"
_EVERY = 5  # of the logs; all of them take minutes


def in_view() -> list[Path]:
    """One-file logs of the train split."""
    told = [file.parent for file in sorted(FAULTS.glob("*/fault.toml")) if _is_in_view(file)]
    return [folder / "recorded" / "job.log" for folder in told if (folder / "recorded" / "job.log").is_file()][::_EVERY]


def _is_in_view(file: Path) -> bool:
    return tomllib.loads(file.read_text(encoding="utf-8")).get("split") == "train"


def folded(text: str) -> str:
    return "\n".join(line[at : at + 80] for line in text.split("\n") for at in range(0, max(len(line), 1), 80))


def each(change: Callable[[int, str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(change(number, line) for number, line in enumerate(text.split("\n"), 1))


FORMS = {
    "a terminal's width": folded,
    "a page's source": html.escape,
    "numbered": each(lambda number, line: f"{number:6d}\t{line}"),
    "journald": each(lambda number, line: f"Nov 17 05:{number // 60 % 60:02d}:{number % 60:02d} node1 train[4711]: {line}"),
    "Docker's JSON": each(lambda _, line: json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-11-17T05:00:00Z"})),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_verdict_does_not_depend_on_the_form(form: str, diagnose: Diagnose) -> None:
    lost = []
    for log in in_view():
        text = log.read_text(encoding="utf-8")
        plain, changed = diagnose(text).verdict, diagnose(FORMS[form](text)).verdict
        if plain is not None and (changed is None or changed.symptom != plain.symptom):
            lost.append(log.parent.parent.name)
    assert len(in_view()) >= 15
    assert len(lost) <= 1, lost
