"""`phalanx trace`: collective traces looked at: where each rank stands, as a table, a page, or a trace for Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from phalanx import private
from phalanx.diagnosis import diagnose_paths
from phalanx.model import Report
from phalanx.model.printable import printable
from phalanx.model.trace import CallState, Traces
from phalanx.report.formation import render_formation
from phalanx.report.perfetto import write_perfetto
from phalanx.report.slots import labelled_groups
from phalanx.report.standings import Standing, absent_ranks, find_standings, in_words
from phalanx.report.text import print_text
from phalanx.sources.inputs import find_inputs
from phalanx.sources.traces import find_traces, read_traces

_EXAMPLES = """\
Examples:

    phalanx trace dumps/                            # who stands where, and the verdict

    phalanx trace dumps/ --html formation.html      # the picture: ranks × calls, for any browser

    phalanx trace dumps/ --perfetto job.json.gz     # for ui.perfetto.dev

    phalanx trace dumps/ --rank 12                  # the last calls of one rank

    phalanx trace dumps/ --group TENSOR             # groups of that name or description only

Exit codes: 0 nothing wrong, 1 findings, 2 the tool could not do its work."""
_SHOWN_STANDINGS = 24
_SHOWN_CALLS = 30


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog=_EXAMPLES)(trace)


def trace(
    paths: Annotated[
        list[str],
        typer.Argument(help="Flight-recorder dumps, Horovod timelines, NCCL RAS reports, profiler traces, or folders."),
    ],
    html: Annotated[Path | None, typer.Option("--html", help="Write the picture to this file.")] = None,
    perfetto: Annotated[
        Path | None, typer.Option("--perfetto", help="Write a trace for Perfetto (.json, .json.gz).")
    ] = None,
    rank: Annotated[int | None, typer.Option("--rank", help="Show the last calls of this rank.")] = None,
    group: Annotated[
        str | None, typer.Option("--group", help="Only groups with this in their name or description.")
    ] = None,
) -> None:
    """Show what every rank was doing in its collectives: a table, a page of ranks × calls, or a trace for Perfetto."""
    console = Console(highlight=False, width=None if Console().is_terminal else 110)
    jobs = _read(paths)
    traces = _only(jobs[0], group) if group else jobs[0]
    for note in _about(jobs, traces):
        console.print(Text(printable(note)), soft_wrap=True)
    report = diagnose_paths(paths, jobs=jobs)
    if rank is not None:
        _print_rank(traces, rank, console)
    else:
        _print_standings(traces, console)
    for item in traces.unchecked[:8]:
        console.print(Text(printable(f"not checked: {item.what}; needs {item.needs}"), style="dim"))
    _write_files(traces, report, html, perfetto)
    console.print()
    print_text(report, console=console)
    raise typer.Exit(1 if report.verdict is not None else 0)


def _read(paths: list[str]) -> list[Traces]:
    try:
        inputs, _ = find_inputs(paths)
    except FileNotFoundError as error:
        typer.echo(f"phalanx: {error}", err=True)
        raise typer.Exit(2) from error
    found, _ = find_traces(inputs)
    jobs = read_traces(found)
    if not jobs or jobs[0].calls.is_empty():
        for item in jobs[0].unchecked if jobs else ():
            typer.echo(f"phalanx: {item.what}; needs {item.needs}", err=True)
        typer.echo(
            "phalanx: no collective trace there. Make dumps with TORCH_NCCL_TRACE_BUFFER_SIZE=2000 (PyTorch), a timeline with "
            "HOROVOD_TIMELINE (Horovod), a report with ncclras (NCCL), or a trace with torch.profiler.",
            err=True,
        )
        raise typer.Exit(2)
    return jobs


def _only(traces: Traces, wanted: str) -> Traces:
    """The traces of groups with these words in their name or description."""
    import polars as pl

    labels = labelled_groups(traces)
    words = wanted.lower()
    fits = (pl.col("name") == wanted) | pl.col("label").str.to_lowercase().str.contains(words, literal=True)
    kept = labels.filter(fits).get_column("group")
    if kept.is_empty():
        known = ", ".join(sorted(set(labels.get_column("label").to_list()))[:20])
        typer.echo(f"phalanx: no group with {wanted!r} in its name or description; there are: {known}", err=True)
        raise typer.Exit(2)
    calls = traces.calls.filter(pl.col("group").is_in(kept.implode()))
    groups = traces.groups.filter(pl.col("group").is_in(kept.implode()))
    return Traces(calls, groups, traces.status, traces.files, traces.world_size, traces.unchecked)


def _about(jobs: list[Traces], traces: Traces) -> list[str]:
    """What was read, in a line or two."""
    forms = sorted({file.form for file in traces.files})
    labels = labelled_groups(traces).get_column("label").n_unique()
    ranks = traces.calls.get_column("rank").n_unique()
    lines = [
        f"{ranks} rank{'s' * (ranks != 1)}, {len(traces.groups)} group{'s' * (len(traces.groups) != 1)} of {labels} "
        f"kind{'s' * (labels != 1)}, {len(traces.calls):,} calls ({', '.join(forms[:4])})"
    ]
    if len(jobs) > 1:
        lines.append(f"{len(jobs) - 1} other job{'s' * (len(jobs) > 2)} in the same place, of {', '.join(str(len(one.files)) for one in jobs[1:6])} ranks: not shown")  # fmt: skip
    if missing := absent_ranks(traces):
        lines.append(f"left no trace: rank{'s' * (len(missing) > 1)} {in_words(missing)}")
    return lines


def _print_standings(traces: Traces, console: Console) -> None:
    """Who stands where, those that stand alike on one line, the fewest first."""
    standings = find_standings(traces)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("ranks", "stands at", "group", "number", "state", "at"):
        table.add_column(name, overflow="fold")
    for one in standings[:_SHOWN_STANDINGS]:
        table.add_row(*(Text(printable(text)) for text in _cells(one)))
    console.print()
    console.print(table)
    if len(standings) > _SHOWN_STANDINGS:
        console.print(Text(f"and {len(standings) - _SHOWN_STANDINGS} more; --html shows all", style="dim"))


def _cells(one: Standing) -> tuple[str, ...]:
    groups = f" ({one.groups} groups)" if one.groups > 1 else ""
    low, high = one.seqs
    behind = f", {one.outstanding - 1} more behind it" if one.outstanding > 1 else ""
    place = one.place.rsplit("/", 1)[-1]
    return in_words(one.ranks, 4), one.op, one.label + groups, str(low) if low == high else f"{low}–{high}", one.words + behind, place  # fmt: skip


def _print_rank(traces: Traces, rank: int, console: Console) -> None:
    """The last calls of one rank."""
    import polars as pl

    own = traces.calls.filter(pl.col("rank") == rank).sort("order").tail(_SHOWN_CALLS)
    if own.is_empty():
        present = in_words(traces.calls.get_column("rank").unique().to_list())
        typer.echo(f"phalanx: no calls of rank {rank} here; there are ranks {present}", err=True)
        raise typer.Exit(2)
    labels = dict(labelled_groups(traces).select("group", "label").iter_rows())
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("number", "call", "group", "sizes", "state", "at"):
        table.add_column(name, overflow="fold")
    words = {CallState.SCHEDULED: "queued", CallState.STARTED: "started", CallState.COMPLETED: "ended"}
    for row in own.iter_rows(named=True):
        peer = f" with rank {row['peer']}" if row["peer"] is not None else ""
        cells = (str(row["seq"]), f"{row['op']}{peer}", labels.get(row["group"], "?"), row["shape"] or "", words[CallState(row["state"])], (row["place"] or "").rsplit("/", 1)[-1])  # fmt: skip
        table.add_row(*(Text(printable(text)) for text in cells))
    console.print(Text(f"\nthe last {len(own)} calls of rank {rank}", style="bold"))
    console.print(table)


def _write_files(traces: Traces, report: Report, html: Path | None, perfetto: Path | None) -> None:
    try:
        if html is not None:
            private.write_text(html, render_formation(traces, report))
            typer.echo(f"wrote {html}", err=True)
        if perfetto is not None:
            kept = write_perfetto(traces, perfetto, report)
            typer.echo(f"wrote {perfetto} (up to {kept} calls a rank); open it at ui.perfetto.dev", err=True)
    except OSError as error:
        typer.echo(f"phalanx: cannot write {error.filename}: {error.strerror}", err=True)
        raise typer.Exit(2) from error
