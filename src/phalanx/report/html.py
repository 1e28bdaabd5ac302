"""The report as one page without any outside reference, to attach to a ticket."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from phalanx import __version__
from phalanx.knowledge import SYMPTOMS
from phalanx.model import Finding, Report
from phalanx.model.figure import Figure
from phalanx.model.ranks import name_ranks
from phalanx.report.curves import draw
from phalanx.report.wording import best_fixes, certainty, what_headline_leaves_out

_MOST_CELLS = 20_000


@cache
def _template() -> Template:
    # Everything in a report may come from a hostile log: escaping is on, and only `_with_code` makes tags.
    environment = Environment(
        loader=PackageLoader("phalanx.report", "templates"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters |= {
        "code": _with_code,
        "ranks": name_ranks,
        "rest": what_headline_leaves_out,
        "certainty": certainty,
        "fixes": best_fixes,
    }
    return environment.get_template("report.html")


def _with_code(text: str) -> Markup:
    """Words between backticks as code; everything is escaped first, so the only tags are these."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner
        return escape(text)
    marked = [Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)]
    return Markup("").join(marked)


def render_html(report: Report, figures: tuple[Figure, ...] = ()) -> str:
    """The whole page, with pictures where there are any."""
    return _template().render(
        report=report,
        verdict=report.verdict,
        symptoms=SYMPTOMS,
        cells=_cells(report),
        figures=[(figure, draw(figure)) for figure in figures],
        version=__version__,
    )


def _cells(report: Report) -> list[dict[str, str]]:
    """One cell a rank: what it is in the verdict's eyes, and what was seen of it."""
    verdict = report.verdict
    known = {rank.number: rank for rank in report.world.ranks}
    cells = []
    for number in sorted(report.world.all_ranks)[:_MOST_CELLS]:
        rank = known.get(number)
        notes = [f"rank {number}: {_part(number, verdict)}" if verdict else f"rank {number}"]
        if rank is None:
            notes.append("left no trace")
        else:
            notes += [f"on {rank.host}"] if rank.host else []
            notes += [f"last step {rank.last_step:g}"] if rank.last_step is not None else []
            notes += [f"exit code {rank.exit_code}"] if rank.exit_code is not None else []
        cells.append(
            {
                "number": str(number),
                "part": _part(number, verdict),
                "note": "; ".join(notes),
                "missing": "missing" if rank is None else "",
            }
        )
    return cells


def _part(number: int, verdict: Finding | None) -> str:
    if verdict is None:
        return "fine"
    if number in verdict.culprit_ranks:
        return "culprit"
    if number in verdict.victim_ranks:
        return "victim"
    return "affected" if number in verdict.affected_ranks else "fine"
