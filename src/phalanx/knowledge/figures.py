"""The study's counts, as shipped: how often a symptom occurred and what cured it."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def load_figures() -> dict[str, Any]:
    """The shipped figures; `python -m phalanx.study DIR --check` recomputes them from the authors' files."""
    text = resources.files("phalanx.knowledge").joinpath("figures.json").read_text(encoding="utf-8")
    figures: dict[str, Any] = json.loads(text)
    return figures


def fault_count(symptom: str) -> int:
    """How many of the study's faults showed this symptom."""
    return int(load_figures()["symptoms"][symptom]["faults"])


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
