"""The picture of a job: one page, ranks downwards and calls across, in which the rank that broke formation is seen."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from phalanx import __version__
from phalanx.model import Report
from phalanx.model.trace import Traces
from phalanx.report.cells import MOST_CELLS, Cells, make_cells
from phalanx.report.lateness import LEVELS
from phalanx.report.slots import labelled_groups
from phalanx.report.standings import absent_ranks, find_standings, in_words

_SHOWN_STANDINGS = 40


@cache
def _loader() -> PackageLoader:
    return PackageLoader("phalanx.report", "templates")


@cache
def _template() -> Template:
    environment = Environment(loader=_loader(), autoescape=True, undefined=StrictUndefined)
    environment.filters["ranks"] = in_words
    return environment.get_template("formation.html")


@cache
def _part(name: str) -> str:
    """A part of the page that is put in as it is."""
    environment = Environment(loader=_loader(), autoescape=True)
    return _loader().get_source(environment, name)[0]


def render_formation(traces: Traces, report: Report | None = None, most_cells: int = MOST_CELLS) -> str:
    """The whole page. Only its own script may run in it: everything that comes from a trace is packed or escaped."""
    cells = make_cells(traces, most_cells)
    script = _part("formation.js")
    verdict = report.verdict if report is not None else None
    standings = find_standings(traces)
    return _template().render(
        version=__version__,
        verdict=verdict,
        report=report,
        cells=cells,
        levels=LEVELS,
        standings=standings[:_SHOWN_STANDINGS],
        more_standings=max(0, len(standings) - _SHOWN_STANDINGS),
        absent=absent_ranks(traces),
        style=Markup(_part("formation.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        packed=cells.packed() | {"about": _packed(_about(traces, cells, report))},
    )


def _packed(value: object) -> str:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return base64.b64encode(zlib.compress(data, 6)).decode()


def _about(traces: Traces, cells: Cells, report: Report | None) -> dict[str, Any]:
    """What explains the raster: kinds of calls, groups, and what is known of each rank."""
    verdict = report.verdict if report is not None else None
    groups = labelled_groups(traces).select("group", "name", "label", "members").sort("group")
    names = {file.rank: file.name for file in traces.files}
    hosts = {file.rank: file.host for file in traces.files if file.host}
    dropped = {file.rank: file.dropped for file in traces.files if file.dropped}
    return {
        "ranks": cells.ranks,
        "absent": list(absent_ranks(traces)),
        "width": cells.width,
        "dropped": cells.dropped,
        "kinds": cells.kinds,
        "groups": {str(number): [name, label, _spans(members)] for number, name, label, members in groups.iter_rows()},
        "local": _shared(cells.groups_of_rank),
        "first": _shared(cells.first_seq),
        "culprits": list(verdict.culprit_ranks) if verdict else [],
        "victims": list(verdict.victim_ranks) if verdict else [],
        "late": [round(cells.late.milliseconds.get(rank, 0.0), 1) for rank in cells.ranks],
        "files": [names.get(rank, "") for rank in cells.ranks],
        "hosts": {str(rank): host for rank, host in hosts.items()},
        "overwritten": {str(rank): count for rank, count in dropped.items()},
    }


def _spans(members: list[int] | None) -> list[int]:
    """Members as first, distance, count, … : ranks of a group mostly stand at one distance."""
    spans: list[int] = []
    for rank in members or []:
        if spans and (spans[-1] == 1 or rank == spans[-3] + spans[-2] * spans[-1]):
            if spans[-1] == 1:
                spans[-2] = rank - spans[-3]
            spans[-1] += 1
        else:
            spans += [rank, 0, 1]
    return spans


def _shared(rows: list[list[int]]) -> dict[str, Any]:
    """Lists of which many are equal: the different ones, and which of them each row has."""
    different: dict[tuple[int, ...], int] = {}
    which = [different.setdefault(tuple(row), len(different)) for row in rows]
    return {"rows": [list(row) for row in different], "which": which}
