"""The study's counts, as shipped: how often a symptom occurred and what cured it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

_BELIEF = 20  # so many faults' worth the shares over all frameworks weigh
_MORE_THAN_CHANCE = 3  # faults of one symptom in one framework with the same cure
_TIE_BREAK = 0.02


@cache
def load_figures() -> dict[str, Any]:
    """The shipped figures; `python -m phalanx.study DIR --check` recomputes them from the authors' files."""
    text = Path(__file__).with_name("figures.json").read_text(encoding="utf-8")
    figures: dict[str, Any] = json.loads(text)
    return figures


def fault_count(symptom: str) -> int:
    """How many of the study's faults showed this symptom."""
    return int(load_figures()["symptoms"][symptom]["faults"])


def expected_share(symptom: str, framework: str | None) -> float:
    """The share of a framework's faults that show this symptom; where it has few, the share over all frameworks counts too."""
    symptoms: dict[str, Any] = load_figures()["symptoms"]
    overall = fault_count(symptom) / sum(int(entry["faults"]) for entry in symptoms.values())
    here = {
        name: int(entry["by_framework"].get(framework or "", {}).get("faults", 0)) for name, entry in symptoms.items()
    }
    return (here[symptom] + _BELIEF * overall) / (sum(here.values()) + _BELIEF)


def distributed_share(symptom: str) -> float:
    """The share of them that was specific to distributed training."""
    entry = load_figures()["symptoms"][symptom]
    return float(entry["distributed_specific"]) / float(entry["faults"])


def fix_share(symptom: str, pattern: str) -> float:
    """The share of a symptom's faults that this pattern cured, over all frameworks."""
    entry = load_figures()["symptoms"][symptom]
    return float(entry["fixes"].get(pattern, 0)) / float(entry["faults"])


def frequent_fixes(symptom: str, framework: str | None) -> list[str]:
    """What cured this symptom, most frequent first: in this framework, where it is more than chance, then in all of them.

    Counts of one or two in a framework are no order: with each of the study's faults left out in turn, more of the cures are
    among the first three if such counts are passed over and what often helps in the framework breaks ties.
    """
    figures = load_figures()
    entry = figures["symptoms"][symptom]
    here: dict[str, int] = entry["by_framework"].get(framework or "", {}).get("fixes", {})
    overall: dict[str, int] = entry["fixes"]

    def weight(name: str) -> tuple[float, float, str]:
        count = here.get(name, 0)
        often = figures["fixes"].get(name, {}).get("by_framework", {}).get(framework or "", 0)
        return (-count if count >= _MORE_THAN_CHANCE else 0, -overall[name] - often * _TIE_BREAK, name)

    ranked = sorted(overall, key=weight)
    return [name for name in ranked if name != "other"]
