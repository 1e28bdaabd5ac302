"""Says in a report where evidence really came from, when the bundle that it was read from is not kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from phalanx.attaching.evidence import Piece
from phalanx.model import Evidence, Report
from phalanx.model.bundle import WATCH

_STACKS = re.compile(r"rank\d+/stacks-\d+\.txt")


def with_origins(report: Report, evidence: Sequence[Piece]) -> Report:
    """The report with paths and commands of the machine instead of names in the bundle."""
    findings = tuple(
        replace(finding, evidence=tuple(_told(item, evidence) for item in finding.evidence))
        for finding in report.findings
    )
    read = dict.fromkeys(name for file in report.read if (name := origin_of(file, evidence)))
    return replace(report, findings=findings, read=tuple(read))


def _told(item: Evidence, evidence: Sequence[Piece]) -> Evidence:
    origin = origin_of(item.file, evidence)
    return replace(item, file=origin, line=0) if origin and origin != item.file else item


def origin_of(file: str, evidence: Sequence[Piece]) -> str:
    """Where a file of the bundle comes from; empty for the bundle's own."""
    inside = file.split("/", 1)[-1]
    if inside == WATCH:
        return "seen now"
    if _STACKS.fullmatch(inside):
        return f"stack of {inside.split('/')[0].replace('rank', 'rank ')}"
    for piece in evidence:
        if inside == (f"rank{piece.rank}/{piece.file}" if piece.rank is not None else piece.file):
            return piece.origin
    return "" if inside.endswith(".json") else file
