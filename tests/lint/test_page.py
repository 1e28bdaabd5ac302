"""The page of rules is the one that the rules make."""

from __future__ import annotations

from pathlib import Path

from phalanx.lint.page import page


def test_the_page_is_up_to_date() -> None:
    written = Path(__file__).parent.parent.parent / "docs" / "lint-rules.md"
    assert written.read_text(encoding="utf-8") == page(), "run: python -m phalanx.lint.page > docs/lint-rules.md"
