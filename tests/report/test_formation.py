"""The picture of a job: compact, self-contained, safe, and right in a real browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import polars as pl
import pytest

from phalanx.model import Confidence, Finding, Report, Stage, World
from phalanx.model.trace import TraceFile, Traces
from phalanx.report.cells import COMPLETED, NOT_ENTERED, STARTED, find_not_entered, make_cells
from phalanx.report.formation import _spans, render_formation

from ..made_traces import made

CHROMIUM = shutil.which("chromium")
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


def report_on(culprits: tuple[int, ...], title: str = "A rank did not come") -> Report:
    victims = tuple(rank for rank in range(16) if rank not in culprits)
    finding = Finding(
        "perf.hang", Stage.TRAIN, "host-stall", None, Confidence.LIKELY, True, "", culprits, victims, (), title, "It waits.", (), ()
    )  # fmt: skip
    return Report(World(16), (finding,))


def hostile(traces: Traces) -> Traces:
    groups = traces.groups.with_columns(description=pl.lit(EVIL), name=pl.col("name") + EVIL)
    calls = traces.calls.with_columns(place=pl.lit(EVIL).cast(pl.Categorical), op=pl.lit(EVIL).cast(pl.Categorical))
    files = tuple(TraceFile(EVIL, file.rank, EVIL, file.calls, host=EVIL) for file in traces.files)
    return Traces(calls, groups, traces.status, files, traces.world_size)


def browse(page: str, folder: Path, wish: str = "") -> str:
    """The page's document after its script has run."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", f"--user-data-dir={folder / 'profile'}", "--window-size=1200,900",
        "--virtual-time-budget=20000", "--dump-dom", f"{file.as_uri()}#{wish}",
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, "HOME": str(folder)}
    )
    assert "<title>" in done.stdout, done.stderr[-2000:]
    return done.stdout


def held(dom: str) -> dict[str, str]:
    return {unescape(name): unescape(value) for name, value in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", dom)}


def test_the_raster_tells_who_waits_and_who_did_not_come() -> None:
    cells = make_cells(made("host-stall"))
    rows = [cells.states[row * cells.width : (row + 1) * cells.width] for row in range(16)]
    assert {row for row, cells_of in enumerate(rows) if NOT_ENTERED in cells_of} == {12}
    assert {row for row, cells_of in enumerate(rows) if STARTED in cells_of} == set(range(16)) - {12}


def test_a_healthy_job_has_nobody_absent() -> None:
    cells = make_cells(made("none"))
    assert {state & 7 for state in cells.states} <= {0, COMPLETED}
    assert find_not_entered(made("none"), cells.axis) == []


def test_every_call_is_in_the_raster() -> None:
    traces = made("missing")
    cells = make_cells(traces)
    assert sum((state & 7) in (1, 2, 3) for state in cells.states) == len(traces.calls)
    assert len(cells.kinds) < 60, "ranks of a stage share their kinds of calls"


def test_old_slots_are_dropped_where_the_raster_would_be_too_large() -> None:
    cells = make_cells(made("none"), most=16 * 80)
    assert cells.width == 80
    assert cells.dropped == cells.axis.length - 80
    assert "oldest slots are left out" in render_formation(made("none"), most_cells=16 * 80)


def test_members_at_one_distance_take_three_numbers() -> None:
    assert _spans([0, 4, 8, 12]) == [0, 4, 4]
    assert _spans(list(range(10_000))) == [0, 1, 10_000]
    for ranks in ([3], [0, 1, 4, 5, 8, 9], [5, 2, 9], []):
        spans = _spans(ranks)
        whole = [spans[i] + n * spans[i + 1] for i in range(0, len(spans), 3) for n in range(spans[i + 2])]
        assert whole == ranks


def test_nothing_is_fetched_and_only_its_own_script_may_run() -> None:
    page = render_formation(hostile(made("host-stall")), report_on((12,), EVIL))
    assert "script-src 'sha256-" in page
    assert "default-src 'none'" in page
    assert "<script>document" not in page
    assert not re.search(r"https?://", page)
    assert not re.search(r"""<[a-z][^>]* (?:src|href)\s*=""", page)
    assert not re.search(r"""<[a-z][^>]* on\w+\s*=\s*["']""", page)


def test_says_in_words_where_they_stand() -> None:
    page = render_formation(made("dead"), report_on((12,)))
    assert "<strong>Left no trace:</strong> rank 12" in page
    assert "started, not ended" in page
    assert "Broke formation: rank 12" in page


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
def test_in_a_real_browser(tmp_path: Path) -> None:
    traces = made("host-stall")
    wait = traces.calls.filter((pl.col("rank") == 13) & (pl.col("state") == 1)).row(0, named=True)
    dom = browse(render_formation(traces, report_on((12,))), tmp_path, "rank=13&hold=13&order=broken")
    assert 'data-ready="16x' in dom, re.findall(r"data-failed=.*?>", dom)
    facts = held(dom)
    assert facts["rank"] == "13 (suffered from it)"
    assert facts["call"] == "_all_gather_base"
    assert facts["number"] == str(wait["seq"]), "the number is counted back from the compact form"
    assert facts["group"].startswith("TENSOR_MODEL_PARALLEL_GROUP (46, 2 ranks)")
    assert facts["state"] == "started, not ended"
    assert facts["at"] == wait["place"]
    assert "16 ranks · rows 1–16" in dom


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
def test_every_number_is_told_rightly(tmp_path: Path) -> None:
    traces = made("none")
    gap = pl.when((pl.col("rank") == 5) & (pl.col("order") >= 5) & ~pl.col("p2p")).then(pl.col("seq") + 7)
    jumped = Traces(
        traces.calls.with_columns(seq=gap.otherwise(pl.col("seq"))), traces.groups, traces.status, traces.files, 16
    )
    last = jumped.calls.filter(pl.col("rank") == 5).sort("order").row(-1, named=True)
    facts = held(browse(render_formation(jumped), tmp_path, "hold=5"))
    assert facts["number"] == str(last["seq"])


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
def test_hostile_names_are_inert_in_a_browser(tmp_path: Path) -> None:
    dom = browse(render_formation(hostile(made("dead")), report_on((12,), EVIL)), tmp_path, "hold=13")
    assert re.findall(r"<title>(.*?)</title>", dom)[0] != "owned"
    assert 'data-ready="16x' in dom, "a rank without a dump has a row too"
    assert "<img" not in dom
    assert held(dom)["call"] == EVIL
