"""docs/zoo.md is what the command prints on what is recorded."""

from __future__ import annotations

from pathlib import Path

from phalanx.diagnosis import diagnose_paths
from phalanx.zoo.coverage import coverage
from phalanx.zoo.named import named_by_framework
from phalanx.zoo.reading import load_zoo
from phalanx.zoo.score import mark, read_causes
from phalanx.zoo.tables import COVERAGE, coverage_table, fill_page, fill_score

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_command_prints() -> None:
    causes = read_causes(ROOT / "faults")
    marks = []
    for fault in load_zoo(ROOT / "faults"):
        report = diagnose_paths([str(fault.recorded)]).to_json()
        marks.append(mark(fault, report, causes=causes, named=named_by_framework(fault, fault.recorded)))
    page = (ROOT / "docs" / "zoo.md").read_text(encoding="utf-8")
    assert fill_score(page, marks) == page, "the score has changed: `make zoo-page` writes it anew"


def test_what_is_covered_is_what_the_command_prints() -> None:
    page = (ROOT / "docs" / "zoo-coverage.md").read_text(encoding="utf-8")
    table = coverage_table(coverage(load_zoo(ROOT / "faults")))
    assert fill_page(page, COVERAGE, table) == page, "the zoo has changed: `make zoo-page` writes it anew"


def test_the_readme_has_the_figures_of_the_page() -> None:
    page = (ROOT / "docs" / "zoo.md").read_text(encoding="utf-8").split("**", 2)[-1]
    first = page.split("\n\n")[1].splitlines()
    rows = [line for line in first if line.startswith(("| all |", "| split "))]
    assert len(rows) == 3
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if row not in readme] == [], "copy the rows of docs/zoo.md"
