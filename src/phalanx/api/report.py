"""The report that the Python functions return: it prints itself, shows itself in a notebook, and gives a table."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from phalanx.model import report as model
from phalanx.model.report_json import read_report

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Report(model.Report):
    """What a verb found. `verdict` is the finding to act on first; None where nothing is wrong.

    print(report)          the text that the command line prints
    report                 in a notebook: the HTML page
    report.ranks()         a polars.DataFrame with one row for each rank
    report.to_json()       the document of the contract `phalanx.report/1`
    """

    said: str = ""  # one sentence where there is no finding: "It is not hung: …"
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)  # as the verb wrote it, its own additions too

    @classmethod
    def of(cls, report: model.Report, document: Mapping[str, Any] | None = None) -> Report:
        """This report in the form that people use from Python."""
        values = {item.name: getattr(report, item.name) for item in fields(model.Report)}
        document = document if document is not None else report.to_json()
        return cls(**values, said=(document.get("attached") or {}).get("said", ""), document=document)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Report:
        """The report of a JSON document that any verb wrote."""
        return cls.of(read_report(document), document)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, as far as could be seen: no error among the findings, and nothing essential left out."""
        return self.is_complete and not any(finding.severity == "error" for finding in self.findings)

    def ranks(self) -> polars.DataFrame:
        """One row for each rank: where it ran, how far it came, how it ended, and its part in the verdict."""
        import polars

        verdict = self.verdict
        known = {rank.number: rank for rank in self.world.ranks}
        hosts = {rank: host.name for host in self.world.hosts for rank in host.ranks}
        rows = []
        for number in sorted(self.world.all_ranks):
            rank = known.get(number)
            part = ""
            if verdict is not None:
                part = _part(number, verdict.culprit_ranks, verdict.victim_ranks, verdict.affected_ranks)
            rows.append(
                {
                    "rank": number,
                    "host": (rank.host if rank else None) or hosts.get(number),
                    "part": part,
                    "last_step": rank.last_step if rank else None,
                    "exit_code": rank.exit_code if rank else None,
                    "seen": rank is not None,
                }
            )
        schema = {
            "rank": polars.Int64,
            "host": polars.String,
            "part": polars.String,
            "last_step": polars.Float64,
            "exit_code": polars.Int64,
            "seen": polars.Boolean,
        }
        return polars.DataFrame(rows, schema=schema)

    def to_html(self) -> str:
        """The page that `--format html` writes."""
        from phalanx.report import Format, render

        return render(self, Format.HTML)

    def __str__(self) -> str:
        if not self.findings and self.said:
            return self.said
        from rich.console import Console

        from phalanx.report import print_text

        text = io.StringIO()
        print_text(self, console=Console(file=text, width=110, no_color=True))
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        """For notebooks: the page in a frame of its own, so that its styles do not reach the notebook's."""
        from markupsafe import escape

        return (
            f'<iframe srcdoc="{escape(self.to_html())}" sandbox="" '
            'style="width:100%;height:36em;border:1px solid #ccc"></iframe>'
        )


def _part(number: int, culprits: tuple[int, ...], victims: tuple[int, ...], affected: tuple[int, ...]) -> str:
    if number in culprits:
        return "culprit"
    if number in victims:
        return "victim"
    return "affected" if number in affected else ""
