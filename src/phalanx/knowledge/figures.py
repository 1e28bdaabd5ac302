"""The study's counts, as shipped: how often a symptom occurred and what cured it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

_BELIEF = 20  # so many faults' worth the shares over all frameworks weigh


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
    """What cured this symptom, most frequent first: in this framework, then in all of them."""
    entry = load_figures()["symptoms"][symptom]
    here: dict[str, int] = entry["by_framework"].get(framework or "", {}).get("fixes", {})
    overall: dict[str, int] = entry["fixes"]
    ranked = sorted(overall, key=lambda name: (-here.get(name, 0), -overall[name], name))
    return [name for name in ranked if name != "other"]
