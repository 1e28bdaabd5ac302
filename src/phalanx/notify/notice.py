"""What is told: one verdict, or that a job goes on again, as text and as a document."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "phalanx.notice/1"


@dataclass(frozen=True, slots=True)
class Notice:
    """`kind` is `verdict` or `recovered`; `text` is what the terminal shows."""

    kind: str
    headline: str
    text: str
    job: str = ""
    bundle: str = ""
    verdict: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """For machines."""
        kept = ("rule", "symptom", "cause", "confidence", "culprit_ranks", "victim_ranks", "headline", "title", "place")
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "headline": self.headline,
            "text": self.text,
            "job": self.job,
            "host": socket.gethostname(),
            "bundle": self.bundle,
            "verdict": {name: self.verdict[name] for name in kept if name in self.verdict} or None,
        }


def notice_of(report: Mapping[str, Any], text: str, job: str, bundle: str) -> Notice | None:
    """The notice of a report; None where it has no verdict."""
    verdict = report.get("verdict")
    if not verdict:
        return None
    return Notice("verdict", str(verdict.get("headline") or verdict["summary"]), text, job, bundle, verdict)
