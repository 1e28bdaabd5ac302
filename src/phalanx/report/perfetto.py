"""The calls of a job as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open: the JSON trace-event format.

A process is a rank, a thread one of its groups, a slice a call. Slices of one thread never overlap but by nesting: a call
begins where the one before it in the same group ended, and calls that did not end lie in each other up to the trace's end.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from phalanx import private
from phalanx.model import Report
from phalanx.model.trace import CallState, Traces
from phalanx.report.lateness import clock_offsets
from phalanx.report.slots import Axis, batches, find_axis, labelled_groups, place

if TYPE_CHECKING:
    import polars

MOST_EVENTS = 2_000_000  # what a browser still opens
_MOST_ARROWS = 32
_SLOT_US = 1000.0  # a slot as time, where a trace has none
_GROUPS_A_RANK = 1000  # thread numbers of a rank: unique in the whole trace, since viewers mix up equal ones
_STATES = {0: "queued, not started", 1: "started, not ended", 2: "ended"}


@dataclass(slots=True)
class _Writer:
    """Writes events one by one; nothing of what was written is kept but where arrows begin and end."""

    file: TextIO
    names: dict[int, tuple[str, str]]
    digits: int  # of the highest rank
    culprits: frozenset[int]
    victims: frozenset[int]
    end_us: float = 0.0
    count: int = 0
    waits: dict[int, tuple[int, float]] = field(default_factory=dict)  # rank → thread and time of its first open call
    lasts: dict[int, tuple[int, float]] = field(default_factory=dict)  # culprit → thread and time of its last call

    def event(self, **values: Any) -> None:
        self.file.write((",\n" if self.count else "\n") + json.dumps(values, ensure_ascii=False, separators=(",", ":")))
        self.count += 1

    def pid(self, rank: int) -> int:
        """A process's number, which Perfetto shows: it ends in the rank, and is not 0, which is taken for the idle process."""
        return int(10**self.digits) + rank

    def process(self, rank: int, about: str) -> None:
        """Name a rank's process. Perfetto sorts by name, other viewers by index: with zeros before it both are the ranks' order."""
        name = f"rank {rank:0{self.digits}}{about}"
        self.event(ph="M", name="process_name", pid=self.pid(rank), tid=0, args={"name": name})
        self.event(ph="M", name="process_sort_index", pid=self.pid(rank), tid=0, args={"sort_index": rank})


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    if path.suffix != ".gz":
        with private.open_new(path) as file:
            yield file
        return
    with open(path, "wb", opener=private.opener) as raw, gzip.open(raw, "wt", 3, encoding="utf-8") as file:
        yield file


def write_perfetto(traces: Traces, path: Path, report: Report | None = None, most: int = MOST_EVENTS) -> int:
    """Write the trace (compressed if the name ends in .gz); the number of calls a rank that were kept, the newest ones."""
    axis = find_axis(traces)
    ranks = max(1, traces.calls.get_column("rank").n_unique())
    kept = max(50, most // ranks)
    verdict = report.verdict if report is not None else None
    with _opened(path) as file:
        names = {number: (name, label) for number, name, label in labelled_groups(traces).select("group", "name", "label").iter_rows()}  # fmt: skip
        culprits = frozenset(verdict.culprit_ranks if verdict else ())
        digits = len(str(max([*traces.ranks, *culprits, (traces.world_size or 1) - 1])))
        writer = _Writer(file, names, digits, culprits, frozenset(verdict.victim_ranks if verdict else ()))
        clock = _Clock.of(traces, axis)
        writer.end_us = clock.end_us
        how = "by the ranks' clocks, aligned by calls that all members end together" if clock.timed else "one slot of the common sequence is 1 ms; the trace holds no times"  # fmt: skip
        file.write(json.dumps({"displayTimeUnit": "ms", "otherData": {"source": "phalanx", "time": how}})[:-1])
        file.write(',"traceEvents":[')
        for batch in batches(traces.calls):
            newest = batch.filter(_newest(kept))
            placed = newest if clock.timed else place(batch, axis).filter(_newest(kept))
            for rank, rows in _by_rank(placed):
                _write_rank(writer, clock, rank, rows)
        if verdict is not None:
            _write_verdict(writer, verdict.title, verdict.summary)
        file.write("\n]}\n")
    return kept


def _newest(kept: int) -> polars.Expr:
    import polars as pl

    return pl.int_range(pl.len()).over("rank") >= pl.len().over("rank").cast(pl.Int64) - kept


def _by_rank(frame: polars.DataFrame) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    for (rank,), rows in frame.partition_by("rank", as_dict=True, maintain_order=True).items():
        yield rank, rows.to_dicts()


@dataclass(frozen=True, slots=True)
class _Clock:
    """Turns a call's times into microseconds since the trace began."""

    timed: bool
    start_ns: int
    end_us: float
    ahead: dict[int, int]

    @classmethod
    def of(cls, traces: Traces, axis: Axis) -> _Clock:
        """By the clocks where most calls have times, else by slots."""
        import polars as pl

        known = traces.calls.select(
            first=pl.col("created_ns").min(),
            last=pl.max_horizontal(
                pl.col("created_ns").max(), pl.col("completed_ns").max(), pl.col("started_ns").max()
            ),
            missing=pl.col("created_ns").null_count(),
        ).row(0)
        if known[0] is None or known[2] * 2 > len(traces.calls):
            return cls(False, 0, (axis.length + 1) * _SLOT_US, {})
        ahead = clock_offsets(traces, axis)
        margin = max((abs(by) for by in ahead.values()), default=0)
        start = known[0] - margin
        return cls(True, start, (known[1] - start + margin) / 1000 * 1.01 + 1000, ahead)

    def span(self, rank: int, row: dict[str, Any]) -> tuple[float, float | None]:
        """When a call began and when it ended; None where it did not."""
        done = row["state"] == int(CallState.COMPLETED)
        if not self.timed:
            begin = row["slot"] * _SLOT_US
            return begin, begin + _SLOT_US * 0.9 if done else None
        shift = self.start_ns + self.ahead.get(rank, 0)
        began = row["started_ns"] if row["started_ns"] is not None else row["created_ns"]
        begin = max(0.0, ((began if began is not None else shift) - shift) / 1000)
        if not done:
            return begin, None
        ended = row["completed_ns"]
        return begin, max(begin, (ended - shift) / 1000) if ended is not None else begin


def _write_rank(writer: _Writer, clock: _Clock, rank: int, rows: list[dict[str, Any]]) -> None:
    pid = writer.pid(rank)
    writer.process(rank, " ▶ broke formation" if rank in writer.culprits else "")
    threads: dict[int, int] = {}
    free: dict[int, float] = {}
    for row in rows:
        group = row["group"]
        name, label = writer.names.get(group, ("?", "?"))
        if group not in threads:
            threads[group] = pid * _GROUPS_A_RANK + len(threads) % _GROUPS_A_RANK
            writer.event(ph="M", name="thread_name", pid=pid, tid=threads[group], args={"name": f"{label} ({name})"})
        tid = threads[group]
        begin, end = clock.span(rank, row)
        begin = max(begin, free.get(tid, 0.0))
        until = max(begin, end) if end is not None else max(writer.end_us, begin)
        if end is not None:
            free[tid] = until
        writer.event(
            ph="X", pid=pid, tid=tid, ts=round(begin, 3), dur=round(until - begin, 3), cat="collective", args=_facts(row),
            name=f"{row['op']} #{row['seq']}" + ("" if end is not None else " (not ended)"),
        )  # fmt: skip
        if end is None and rank not in writer.waits and (rank in writer.victims or not writer.victims):
            writer.waits[rank] = (tid, begin)
        if rank in writer.culprits:
            writer.lasts[rank] = (tid, begin)


def _facts(row: dict[str, Any]) -> dict[str, Any]:
    facts = {"seq": row["seq"], "state": _STATES.get(row["state"], "?"), "sizes": row["shape"], "dtype": row["dtype"], "at": row["place"], "peer": row["peer"], "root": row["root"]}  # fmt: skip
    return {key: value for key, value in facts.items() if value is not None}


def _write_verdict(writer: _Writer, title: str, summary: str) -> None:
    """A mark on each culprit, and arrows to it from ranks that wait."""
    for rank in sorted(writer.culprits):
        tid, begin = writer.lasts.get(rank, (0, writer.end_us))
        if rank not in writer.lasts:  # it left no trace: it still gets a row
            writer.process(rank, " ▶ left no trace")
        writer.event(ph="i", s="p", name=title, pid=writer.pid(rank), tid=tid, ts=round(begin, 3), cat="verdict", args={"summary": summary})  # fmt: skip
    arrow = 0
    for culprit, (culprit_tid, at) in sorted(writer.lasts.items()):
        waiting = [(rank, where) for rank, where in sorted(writer.waits.items()) if rank not in writer.culprits]
        for rank, (tid, begin) in waiting[:_MOST_ARROWS]:
            arrow += 1
            shared: dict[str, Any] = {"name": "waits for", "cat": "verdict", "id": arrow}
            # An arrow cannot point back in time: it begins at the earlier of its two ends.
            writer.event(ph="s", pid=writer.pid(culprit), tid=culprit_tid, ts=round(min(at, begin), 3), **shared)
            writer.event(ph="f", bp="e", pid=writer.pid(rank), tid=tid, ts=round(max(at, begin), 3), **shared)
