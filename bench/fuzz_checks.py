"""What every report has to be, whatever was read: of the promised form, and harmless to terminals and browsers."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from typing import Any

from rich.console import Console

from phalanx.knowledge import SYMPTOMS
from phalanx.model import Report
from phalanx.report import Format, print_text, render

# What moves a cursor, sets a title or turns the direction of text round; tabs and new lines are harmless.
_HARMFUL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_ACTIVE_TAGS = frozenset(
    ("script", "img", "iframe", "object", "embed", "link", "base", "form", "input", "svg", "a", "video", "audio")
)
_FINDING = {
    "symptom": str, "stage": str | None, "cause": str, "rule": str | None, "confidence": str, "distributed_specific": bool,
    "culprit_ranks": list, "victim_ranks": list, "summary": str, "fixes": list, "evidence": list,
}  # fmt: skip
_FIX = {"pattern": str, "title": str, "do": str, "why": str, "where": dict | None, "safety": str}
_EVIDENCE = {"rank": int | None, "file": str, "line": int, "text": str, "role": str}


def check_outputs(report: Report) -> None:
    """Raises AssertionError for the first thing that is not as it must be."""
    document = render(report, Format.JSON)
    check_contract(json.loads(document))
    outputs = {"JSON": document, "SARIF": render(report, Format.SARIF), "HTML": render(report, Format.HTML)}
    json.loads(outputs["SARIF"])
    for everything in (False, True):
        shown = io.StringIO()
        print_text(report, everything=everything, console=Console(file=shown, highlight=False))
        outputs[f"text {everything}"] = shown.getvalue()
    for form, output in outputs.items():
        found = _HARMFUL.search(output)
        assert found is None, f"{form} holds {found[0]!r}: {output[max(0, found.start() - 80) : found.end() + 80]!r}"
        output.encode()  # half of a surrogate pair would break whoever writes it to a file
    page = _Page()
    page.feed(outputs["HTML"])
    assert not page.active, f"HTML holds {page.active[:3]}"


def check_contract(document: dict[str, Any]) -> None:
    """The JSON contract of docs/design.md, version 1."""
    assert document["schema"] == "phalanx.report/1", document["schema"]
    assert {"size", "framework", "launcher", "hosts"} <= document["world"].keys(), document["world"].keys()
    findings = document["findings"]
    assert document["verdict"] == (findings[0] if findings else None), "the verdict comes first"
    for finding in findings:
        _check_types(finding, _FINDING)
        assert finding["symptom"] in SYMPTOMS, finding["symptom"]
        assert not set(finding["culprit_ranks"]) & set(finding["victim_ranks"]), "both culprit and victim"
        assert all(type(rank) is int for rank in finding["culprit_ranks"] + finding["victim_ranks"])
        for fix in finding["fixes"]:
            _check_types(fix, _FIX)
        for evidence in finding["evidence"]:
            _check_types(evidence, _EVIDENCE)
    for one in document["not_checked"]:
        _check_types(one, {"what": str, "needs": str})


def _check_types(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, kind in wanted.items():
        assert name in found, f"{name} is missing from {sorted(found)}"
        assert isinstance(found[name], kind), f"{name}: {found[name]!r}"


class _Page(HTMLParser):
    """Notes whatever in a page could run or fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.active: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        handlers = [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]
        if tag in _ACTIVE_TAGS or handlers:
            self.active.append(f"<{tag} {attrs}>")
