"""Writes what is new into a folder: tables, one page, drafts of rules."""

from pathlib import Path

from phalanx.study.drift.survey import Drift
from phalanx.study.errors import StudyError
from phalanx.study.page import render_page


def write_drift(drift: Drift, folder: Path) -> None:
    """Write everything; drafts stand below `rules` as they would in a pack of rules."""
    tables = drift.tables()
    lead = f"{drift.posts} issues, {drift.recent} of them since {drift.since}; {len(drift.unknown)} frequent messages that no rule knows."
    files = {
        "drift.md": "# What is new\n\n" + "\n".join(table.markdown() for table in tables),
        "drift.html": render_page("What is new", lead, "Made by phalanx study drift.", tables, {}),
        **{f"{table.name}.csv": table.csv() for table in tables},
        **{f"rules/{draft.path}": draft.text for draft in drift.drafts},
    }
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StudyError(f"{error.filename or folder}: cannot be written ({error.strerror}).") from error
