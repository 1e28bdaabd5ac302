"""Labelled texts to learn from: read from CSV, JSON lines or Parquet, every row checked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS
from phalanx.study.errors import StudyError

TARGETS = ("type", "symptom", "fix", "distributed")
TYPES = ("fault", "how-to question")
_YES, _NO = "yes", "no"
_DISTRIBUTED = {"1": _YES, "1.0": _YES, "true": _YES, "yes": _YES, "0": _NO, "0.0": _NO, "false": _NO, "no": _NO}


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text and what people said of it; a label that is missing is None."""

    text: str
    labels: Mapping[str, str | None]


def read_labelled(path: Path) -> tuple[list[Labelled], Counter[str]]:
    """The usable rows, and how many were not usable, by reason. Columns: text (or title and body), type, symptom, fix, distributed."""
    rows = read_table(path)
    if rows and "text" not in rows[0] and "body" not in rows[0]:
        raise StudyError(f"{path}: no column `text`, nor `title` and `body`; found {', '.join(rows[0])}.")
    if rows and not any(target in rows[0] for target in TARGETS):
        raise StudyError(f"{path}: none of the columns {', '.join(TARGETS)}; found {', '.join(rows[0])}.")
    found: list[Labelled] = []
    problems: Counter[str] = Counter()
    for row in rows:
        text = text_of(row)
        labels = {target: _check(target, row.get(target), problems) for target in TARGETS}
        if not text.strip():
            problems["rows without a text"] += 1
        elif not any(labels.values()):
            problems["rows without a usable label"] += 1
        else:
            found.append(Labelled(text, labels))
    return found, problems


def read_table(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, or of a collection's Parquet parts."""
    import polars

    try:
        if path.is_dir():
            parts = sorted((path / "posts").glob("*.parquet")) or sorted(path.glob("*.parquet"))
            if not parts:
                raise StudyError(f"{path}: no Parquet files. Give a collection of `phalanx study collect`, or a file.")
            return [row for part in parts for row in polars.read_parquet(part).to_dicts()]
        readers: dict[str, Any] = {
            ".csv": _read_csv,
            ".jsonl": polars.read_ndjson,
            ".ndjson": polars.read_ndjson,
            ".parquet": polars.read_parquet,
        }
        reader = readers.get(path.suffix.lower())
        if reader is None:
            raise StudyError(f"{path}: give a .csv, .jsonl or .parquet file, or a collection's folder.")
        return list(reader(path).to_dicts())
    except (OSError, polars.exceptions.PolarsError) as error:
        raise StudyError(f"{path}: cannot be read ({error}).") from error


def _read_csv(path: Path) -> Any:
    import polars

    # All columns as text: a label is a word, also where it looks like a number.
    return polars.read_csv(path, infer_schema=False, encoding="utf8-lossy")


def text_of(row: Mapping[str, Any]) -> str:
    """A row's own words."""
    if row.get("text"):
        return str(row["text"])
    return f"# {row.get('title') or ''}\n\n{row.get('body') or ''}" if row.get("title") or row.get("body") else ""


def _check(target: str, value: object, problems: Counter[str]) -> str | None:
    if value is None or str(value).strip() == "":
        return None
    label = str(value).strip()
    if target == "distributed":
        label = _DISTRIBUTED.get(label.lower(), "")
    known = {"type": TYPES, "symptom": SYMPTOMS, "fix": FIX_PATTERNS, "distributed": (_YES, _NO)}[target]
    if label in known:
        return label
    problems[f"an unknown {target}: {str(value)[:60]!r}"] += 1
    return None
