"""One self-contained page of tables and plots: nothing is fetched, everything is escaped."""

import base64
from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from phalanx.study.table import Table


def render_page(title: str, lead: str, source: str, tables: Sequence[Table], plots: Mapping[str, bytes]) -> str:
    """The page; a plot (SVG) stands at the table of the same name."""
    environment = Environment(
        loader=PackageLoader("phalanx.study", "templates"), autoescape=True, undefined=StrictUndefined
    )
    # An SVG as an image cannot run scripts nor fetch, whatever is in it.
    pictures = {name: base64.b64encode(svg).decode("ascii") for name, svg in plots.items()}
    template = environment.get_template("study.html")
    return template.render(title=title, lead=lead, source=source, tables=tables, plots=pictures)
