"""What each part of the diagnosis earns: how the score and the rules' own cases change when it is switched off."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phalanx.zoo.score import Mark
from phalanx.zoo.tables import TextTable

SCHEMA = "phalanx.ablation/1"
Part = tuple[str, str]  # detector, strategy or rule; and its name
MEASURES = ("symptom_first", "cause", "culprit_exact", "fix_first", "innocent_accused", "false_alarm")
_SHOWN = ("symptom", "cause", "culprit", "fix", "innocents", "false alarms")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one recorded log or one case of a rule without a part, beside what becomes of it with all parts.

    Marks are None of a case; there it only counts whether another verdict came out.
    """

    part: Part
    name: str
    owner: str  # of a case: the code of its rule
    differs: bool
    before: Mark | None = None
    after: Mark | None = None


@dataclass(slots=True)
class Effect:
    """All that the removal of one part changes: how many more or fewer of each measure by split, and which logs and cases."""

    by_split: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    logs: list[str] = field(default_factory=list)  # with another verdict; those of the test split are only counted
    held_back: int = 0
    cases: list[str] = field(default_factory=list)  # of other rules
    own_cases: int = 0

    @property
    def is_nothing(self) -> bool:
        """No log and no case of another rule has another verdict."""
        return not (self.logs or self.held_back or self.cases)


def effects(parts: Iterable[Part], outcomes: Iterable[Outcome]) -> dict[Part, Effect]:
    """The effect of each part's removal, over all outcomes."""
    found = {part: Effect() for part in parts}
    for one in outcomes:
        effect = found[one.part]
        if not one.differs:
            continue
        if one.before is None or one.after is None:
            if one.part == ("rule", one.owner):
                effect.own_cases += 1
            else:
                effect.cases.append(f"{one.owner}: {one.name}")
            continue
        split = one.before.split
        for measure in MEASURES:
            effect.by_split[split][measure] += getattr(one.after, measure) - getattr(one.before, measure)
        if split == "test":
            effect.held_back += 1
        else:
            effect.logs.append(one.name)
    return found


def table(found: Mapping[Part, Effect]) -> TextTable:
    """One row for each part whose removal changes a verdict, the most useful first; empty cells are zeros."""
    rows = []
    for (kind, name), effect in sorted(found.items(), key=_usefulness):
        if effect.is_nothing:
            continue
        cells = [f"{kind} {name}"]
        for split in ("train", "test"):
            cells += [f"{effect.by_split[split][measure]:+d}".replace("+0", "") for measure in MEASURES]
        rows.append((*cells, str(len(effect.logs) + effect.held_back), str(len(effect.cases) or "")))
    headings = ("without", *_SHOWN, *(f"test {what}" for what in _SHOWN), "other verdicts", "cases of others")
    return TextTable("What changes without each part", headings, tuple(rows))


def _usefulness(item: tuple[Part, Effect]) -> tuple[int, int, str]:
    (kind, name), effect = item
    train = effect.by_split["train"]
    harm = train["innocent_accused"] + train["false_alarm"]
    good = sum(train[measure] for measure in MEASURES[:4])
    order = {"detector": 0, "strategy": 1, "rule": 2}[kind]
    return order, good - harm, name


def idle(found: Mapping[Part, Effect]) -> dict[str, list[str]]:
    """By kind, the parts whose removal changes no verdict on any log nor on a case of another rule."""
    names: dict[str, list[str]] = {"detector": [], "strategy": [], "rule": []}
    for (kind, name), effect in found.items():
        if effect.is_nothing:
            names[kind].append(name)
    return names


def changed(found: Mapping[Part, Effect]) -> Sequence[str]:
    """Which logs of the train split and which cases have another verdict without each part."""
    return [
        f"{kind} {name}: {', '.join([*effect.logs, *effect.cases])}"
        for (kind, name), effect in found.items()
        if effect.logs or effect.cases
    ]


def as_json(found: Mapping[Part, Effect]) -> dict[str, Any]:
    """For machines: every part with what its removal changes."""
    return {
        "schema": SCHEMA,
        "parts": [
            {
                "kind": kind,
                "name": name,
                **{split: dict(effect.by_split[split]) for split in ("train", "test")},
                "logs": effect.logs,
                "held_back_logs": effect.held_back,
                "cases": effect.cases,
                "own_cases": effect.own_cases,
            }
            for (kind, name), effect in found.items()
        ],
    }
