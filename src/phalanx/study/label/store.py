"""The raters' labels in SQLite: each is on the disk before the page says that it is saved."""

import csv
import io
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS
from phalanx.study.classify.labelled import TYPES
from phalanx.study.errors import StudyError
from phalanx.study.reproduce.kappa import Agreement, agree

RATERS = ("1", "2")
FINAL = "final"
LABELS = ("type", "symptom", "fix", "distributed")
_SCHEMA = """
create table if not exists issues (key text primary key, place integer, url text, title text, body text) without rowid;
create table if not exists ratings (issue text references issues (key), rater text, type text, symptom text, fix text, distributed text, memo text,
    at text default current_timestamp, primary key (issue, rater)) without rowid;
create table if not exists history (issue text, rater text, type text, symptom text, fix text, distributed text, memo text, at text default current_timestamp);
"""


class Labels:
    """One labelling: its issues, both raters' labels, the adjudicated ones, and every earlier answer."""

    def __init__(self, path: Path) -> None:
        try:
            self._base = sqlite3.connect(path, timeout=30, check_same_thread=False)
            self._base.row_factory = sqlite3.Row
            self._base.execute("pragma journal_mode = wal")
            self._base.execute("pragma synchronous = full")
            self._base.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise StudyError(
                f"{path}: cannot be opened ({error}). Give another file, or move this one away."
            ) from error
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def add_issues(self, rows: Iterable[Mapping[str, Any]]) -> int:
        """Add issues that are not there yet; returns how many."""
        added = 0
        with self._lock, self._base:
            place = int(self._base.execute("select coalesce(max(place), 0) from issues").fetchone()[0])
            for number, row in enumerate(rows, start=1):
                key = str(row.get("key") or row.get("url") or f"row {number}")
                body = str(row.get("body") or row.get("text") or "")
                values = (key, place + number, str(row.get("url") or ""), str(row.get("title") or body[:80]), body)
                added += self._base.execute("insert or ignore into issues values (?, ?, ?, ?, ?)", values).rowcount
        return added

    def issues(self, rater: str) -> list[dict[str, Any]]:
        """What a rater has before them, in order, with their own labels; never the other's."""
        with self._lock:
            rows = self._base.execute(
                "select key, title, ratings.type is not null as done from issues left join ratings on issue = key and rater = ? order by place",
                (rater,),
            ).fetchall()
        return [dict(row) for row in rows]

    def issue(self, key: str, rater: str) -> dict[str, Any] | None:
        """One issue with its text and this rater's labels. For the adjudicator: with both raters' labels."""
        with self._lock:
            row = self._base.execute("select * from issues where key = ?", (key,)).fetchone()
            if row is None:
                return None
            names = (*RATERS, FINAL) if rater == FINAL else (rater,)
            marks = ", ".join("?" * len(names))
            found = self._base.execute(
                f"select * from ratings where issue = ? and rater in ({marks})", (key, *names)
            ).fetchall()
        return dict(row) | {"ratings": {one["rater"]: dict(one) for one in found}}

    def rate(self, key: str, rater: str, labels: Mapping[str, Any]) -> None:
        """Keep a rater's labels; an earlier answer stays in the history."""
        values = check_labels(labels)
        with self._lock, self._base:
            if self._base.execute("select 1 from issues where key = ?", (key,)).fetchone() is None:
                raise StudyError(f"there is no issue {key!r}")
            row = (key, rater, *(values[name] for name in (*LABELS, "memo")))
            columns = "issue, rater, type, symptom, fix, distributed, memo"
            self._base.execute(f"insert or replace into ratings ({columns}) values (?, ?, ?, ?, ?, ?, ?)", row)
            self._base.execute(f"insert into history ({columns}) values (?, ?, ?, ?, ?, ?, ?)", row)

    def pairs(self) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
        """The issues that both have rated: key, first and second labels."""
        query = f"""select issues.key as key, {", ".join(f"a.{name} as a_{name}, b.{name} as b_{name}" for name in LABELS)} from issues
            join ratings a on a.issue = key and a.rater = '1' join ratings b on b.issue = key and b.rater = '2' order by place"""
        with self._lock:
            rows = self._base.execute(query).fetchall()
        return [
            (row["key"], {name: row[f"a_{name}"] for name in LABELS}, {name: row[f"b_{name}"] for name in LABELS})
            for row in rows
        ]

    def disagreements(self) -> list[dict[str, Any]]:
        """The issues on which the raters differ, and whether they are adjudicated."""
        finals = {one["key"]: one for one in self.issues(FINAL)}
        return [finals[key] for key, first, second in self.pairs() if first != second]

    def agreement(self) -> dict[str, Agreement]:
        """Cohen's kappa on every question, as in the study: a question is one label beside the symptoms."""
        found = {}
        pairs = self.pairs()
        for name in LABELS:
            labels = [(first[name] or first["type"], second[name] or second["type"]) for _, first, second in pairs]
            result = agree(labels)
            if result is not None:
                found[name] = result
        return found

    def results(self) -> list[dict[str, Any]]:
        """The labels that stand: the adjudicated ones, or those that both raters gave."""
        agreed = {key: first for key, first, second in self.pairs() if first == second}
        standing = []
        for one in self.issues(FINAL):
            whole = self.issue(one["key"], FINAL)
            labels = whole and (whole["ratings"].get(FINAL) or agreed.get(one["key"]))
            if whole and labels:
                standing.append(
                    {name: whole[name] for name in ("key", "url", "title", "body")}
                    | {name: labels[name] for name in LABELS}
                )
        return standing

    def export(self) -> str:
        """The standing labels as CSV, for `phalanx study train`."""
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=("key", "url", "title", "body", *LABELS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.results())
        return text.getvalue()


def check_labels(labels: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Labels as they are kept; what is missing or unknown is refused, with what is expected."""
    kind = labels.get("type")
    if kind not in TYPES:
        raise StudyError(f"type must be one of {', '.join(TYPES)}")
    memo = str(labels.get("memo") or "")[:2000]
    if kind != "fault":
        return {"type": kind, "symptom": None, "fix": None, "distributed": None, "memo": memo}
    if labels.get("symptom") not in SYMPTOMS:
        raise StudyError("a fault needs one of the 30 symptoms")
    if labels.get("fix") not in FIX_PATTERNS:
        raise StudyError("a fault needs a fix pattern")
    if labels.get("distributed") not in ("yes", "no"):
        raise StudyError("say whether the fault is specific to distributed training: yes or no")
    return {name: str(labels[name]) for name in LABELS} | {"memo": memo}
