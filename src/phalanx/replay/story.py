"""Tells the outcome of a replay to a person."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from phalanx.model.printable import printable_tree
from phalanx.replay.divergence import Judgement, Verdict

_TITLES = {
    Verdict.SAME: "The replay agrees with the recording",
    Verdict.REPEATS: "A software fault that repeats",
    Verdict.TRANSIENT: "Transient: memory or hardware",
    Verdict.CHANCE: "Non-deterministic code",
    Verdict.DATA: "Different data",
    Verdict.SOFTWARE: "Different software or environment",
    Verdict.ENDS_OTHERWISE: "It ends otherwise",
    Verdict.INCOMPLETE: "The recording is not complete",
    Verdict.DIFFERS: "The replay differs from the recording",
}


def print_judgement(judgement: Judgement, color: bool = True) -> None:
    """To standard output."""
    judgement = printable_tree(judgement)
    console = Console(no_color=not color, highlight=False, soft_wrap=False, width=None if color else 110)
    good = judgement.status == 0
    mark = Text("✓ " if good else "✗ ", "bold green" if good else "bold red")
    console.print(
        mark + Text(_TITLES[judgement.verdict], "bold") + Text(f"  [{judgement.verdict.value}, {judgement.fidelity}]")
    )
    console.print(Text("  " + judgement.sentence))
    if judgement.first is not None:
        for label, value in _rows(judgement.first):
            console.print(Text(f"  {label:<7}", "bold") + Text(value))
    for change in judgement.changes[:8]:
        console.print(Text("  change ", "bold") + Text(change.text))
    if judgement.fidelity == "tolerance":
        console.print(Text("  Not the recorded software or hardware: differences in the last bits mean nothing here."))


def _rows(first: dict[str, Any]) -> list[tuple[str, str]]:
    found = [("step", str(first["step"]))]
    if "op" in first:
        shapes = ", ".join(f"{shape[0]}{list(shape[1:])}" for shape in first.get("shapes", []))
        found.append(
            ("call", f"{first['op'].strip('_')} of {shapes or 'nothing'}, call {first['q']} of group {first['g']}")
        )
    found.append(("what", str(first["what"])))
    if first.get("elements"):
        found.append(("where", "elements " + ", ".join(f"{low} to {high - 1}" for low, high in first["elements"][:4])))
    if first.get("names"):
        found.append(("tensor", ", ".join(first["names"])))
    if first.get("line"):
        found.append(("line", first["line"]))
    return found
