"""Writes labels beside the issues they are for, and counts them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phalanx.study.classify.apply import Labels
from phalanx.study.errors import StudyError

# What tells an issue; its text stays where it was collected.
_KEPT = ("key", "url", "title", "created", "place", "preset", "duplicate_of")


def write_labels(path: Path, rows: Sequence[Mapping[str, Any]], labels: Sequence[Mapping[str, Any]]) -> None:
    """One row an issue: what tells it, then its labels. The ending of the name chooses the format."""
    import polars

    kept = [name for name in _KEPT if rows and name in rows[0]]
    records = [{name: row.get(name) for name in kept} | dict(label) for row, label in zip(rows, labels, strict=True)]
    frame = polars.DataFrame(records, infer_schema_length=None)
    writers: dict[str, Any] = {".parquet": frame.write_parquet, ".csv": frame.write_csv, ".jsonl": frame.write_ndjson}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise StudyError(f"{path}: give a name that ends in {', '.join(writers)}.")
    partial = path.with_name(path.name + ".partial")
    try:
        writer(partial)
        partial.replace(path)
    except OSError as error:
        raise StudyError(f"{path}: cannot be written ({error}).") from error


def count_labels(found: Sequence[Labels]) -> list[str]:
    """What was said how often, for the terminal."""
    lines = [f"{len(found)} issues labelled by the text model"]
    symptoms = Counter(one.symptom for one in found if one.symptom)
    lines += [f"  {times:6} {symptom}" for symptom, times in symptoms.most_common(12)]
    questions = sum(one.type == "how-to question" for one in found)
    return lines + ([f"  {questions:6} how-to questions"] if questions else [])
