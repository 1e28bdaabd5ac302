"""Where collected posts are kept: SQLite while collecting, so that nothing is lost at a kill; Parquet to work with.

A page of posts and the cursor behind it are written in one transaction: whenever the program ends, the next run goes
on exactly after the last page that was kept.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from phalanx.study.collect.post import POST_FIELDS, Post
from phalanx.study.errors import StudyError

FILE = "collection.sqlite"
_SCHEMA = f"""
create table if not exists posts ({", ".join(f"{name} {'integer' if name == 'number' else 'text'}" for name in POST_FIELDS)}, duplicate_of text,
    primary key (key)) without rowid;
create table if not exists cursors (name text primary key, state text not null) without rowid;
create table if not exists problems (place text, reason text, sample text, times integer not null default 1, primary key (place, reason)) without rowid;
"""
_LISTS = ("tags", "replies")
_ROWS_A_PART = 50_000


@dataclass(slots=True)
class Counts:
    """What became of what was read."""

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    left_out: int = 0  # pull requests, posts that the query does not ask for
    bad: int = 0
    reasons: dict[str, int] = field(default_factory=dict)


class Store:
    """One collection: a folder."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(folder / FILE, timeout=30)
            self._base.execute("pragma journal_mode = wal")
            self._base.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise StudyError(
                f"{folder / FILE}: cannot be opened ({error}). Give another folder, or move this file away."
            ) from error
        self.folder = folder
        self.counts = Counts()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._base.close()

    def cursor(self, name: str) -> dict[str, object]:
        """Where an earlier run came to; empty if there was none."""
        row = self._base.execute("select state from cursors where name = ?", (name,)).fetchone()
        return dict(json.loads(row[0])) if row else {}

    def add_page(self, posts: Iterable[Post], name: str, state: dict[str, object]) -> None:
        """Keep a page and the cursor behind it, both or neither."""
        try:
            with self._base:
                for post in posts:
                    self._add(post)
                self._base.execute("insert or replace into cursors values (?, ?)", (name, json.dumps(state)))
        except sqlite3.Error as error:
            raise StudyError(
                f"{self.folder / FILE}: cannot be written ({error}). What was kept before stays."
            ) from error

    def _add(self, post: Post) -> None:
        row = self._base.execute("select updated, preset, replies from posts where key = ?", (post.key,)).fetchone()
        if row is not None and row[0] >= post.updated and not (post.replies and row[2] == "[]"):
            self.counts.unchanged += 1
            return
        values = [json.dumps(value, ensure_ascii=False) if name in _LISTS else value for name, value in zip(POST_FIELDS, astuple(post), strict=True)]  # fmt: skip
        places = ", ".join("?" * len(values))
        self._base.execute(f"insert or replace into posts ({', '.join(POST_FIELDS)}) values ({places})", values)
        if row is None:
            self.counts.new += 1
        else:
            self.counts.updated += 1

    def note(self, place: str, reason: str, sample: str = "") -> None:
        """Remember what could not be used: nothing is dropped in silence."""
        self.counts.bad += 1
        self.counts.reasons[reason] = self.counts.reasons.get(reason, 0) + 1
        with self._base:
            self._base.execute(
                "insert into problems values (?, ?, ?, 1) on conflict do update set times = times + 1",
                (place, reason, sample[:200]),
            )

    def problems(self) -> list[tuple[str, str, str, int]]:
        """All problems of all runs: place, reason, a sample, how often."""
        return list(self._base.execute("select place, reason, sample, times from problems order by times desc"))

    def posts(self) -> Iterator[Post]:
        """Every post, in the order of keys."""
        for row in self._base.execute(f"select {', '.join(POST_FIELDS)} from posts order by key"):
            yield _post(row)

    def __len__(self) -> int:
        return int(self._base.execute("select count(*) from posts").fetchone()[0])

    def mark_duplicates(self, originals: dict[str, str]) -> None:
        """Say of posts which other post they repeat; they are kept."""
        with self._base:
            self._base.execute("update posts set duplicate_of = null where duplicate_of is not null")
            self._base.executemany(
                "update posts set duplicate_of = ? where key = ?", [(kept, key) for key, kept in originals.items()]
            )

    def export(self) -> list[Path]:
        """Write the posts as Parquet, part by part: memory does not grow with the collection."""
        import polars

        target = self.folder / "posts"
        target.mkdir(exist_ok=True)
        schema = {name: polars.Int64 if name == "number" else polars.List(polars.String) if name in _LISTS else polars.String for name in (*POST_FIELDS, "duplicate_of")}  # fmt: skip
        rows = self._base.execute(f"select {', '.join(POST_FIELDS)}, duplicate_of from posts order by key")
        written: list[Path] = []
        while part := rows.fetchmany(_ROWS_A_PART):
            columns: dict[str, list[object]] = {
                name: [json.loads(row[index]) if name in _LISTS else row[index] for row in part] for index, name in enumerate(schema)
            }  # fmt: skip
            path = target / f"part-{len(written):04}.parquet"
            partial = path.with_suffix(".partial")
            polars.DataFrame(columns, schema=schema).write_parquet(partial, compression="zstd")
            written.append(partial.replace(path))
        for old in set(target.glob("part-*.parquet")) - set(written):
            old.unlink()
        return written


def _post(row: tuple[object, ...]) -> Post:
    values = dict(zip(POST_FIELDS, row, strict=True))
    for name in _LISTS:
        values[name] = tuple(json.loads(str(values[name])))
    return Post(**values)  # type: ignore[arg-type]
