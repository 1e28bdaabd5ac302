"""Reads `fault.toml` into its typed form, and refuses a bad one with file, key and what was expected."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS
from phalanx.zoo.fault import FRAMEWORKS, LAYOUTS, SPLITS, STAGES, Cure, Fault, FaultError, Needs, RunPlan

_KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class _Table:
    """Typed reads from one TOML table; what is left over at the end is a misspelt key."""

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self.where = where
        self.values = dict(values)

    def fail(self, key: str, problem: str) -> FaultError:
        return FaultError(f"{self.where}: {key}: {problem}")

    def take(self, key: str, kind: type[Any], default: Any = ...) -> Any:
        if key not in self.values:
            if default is ...:
                raise self.fail(key, "is missing")
            return default
        value = self.values.pop(key)
        # bool is an int in Python, but `world_size = true` is a slip
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fail(key, f"expected {kind.__name__}, found {type(value).__name__} {value!r}")
        return value

    def choice(self, key: str, allowed: tuple[str, ...]) -> str:
        value: str = self.take(key, str)
        if value not in allowed:
            raise self.fail(key, f"{value!r} is not one of {', '.join(allowed)}")
        return value

    def pattern(self, key: str, shape: re.Pattern[str], example: str) -> str:
        value: str = self.take(key, str)
        if not shape.fullmatch(value):
            raise self.fail(key, f"{value!r} has not the form of {example!r}")
        return value

    def many(self, key: str, kind: type[Any], default: Any = ...) -> tuple[Any, ...]:
        values = self.take(key, list, default)
        for value in values:
            if not isinstance(value, kind) or isinstance(value, bool):
                raise self.fail(key, f"expected a list of {kind.__name__}, found {value!r} in it")
        return tuple(values)

    def commands(self, key: str) -> tuple[tuple[str, ...], ...]:
        rows = self.take(key, list, [])
        for row in rows:
            if not isinstance(row, list) or not row or not all(isinstance(word, str) for word in row):
                raise self.fail(key, f"expected a list of commands, each a list of strings; found {row!r} in it")
        return tuple(tuple(row) for row in rows)

    def strings(self, key: str) -> dict[str, str]:
        table = self.take(key, dict, {})
        for name, value in table.items():
            if not isinstance(value, str):
                raise self.fail(f"{key}.{name}", f"expected a string, found {value!r}")
        return dict(table)

    def strings_by_rank(self, key: str) -> dict[int, dict[str, str]]:
        inner = _Table(f"{self.where}: {key}", self.take(key, dict, {}))
        found = {}
        for rank in list(inner.values):
            if not rank.isdigit():
                raise self.fail(key, f"{rank!r} is not a rank")
            found[int(rank)] = inner.strings(rank)
        return found

    def table(self, key: str, *, required: bool) -> _Table:
        values = self.take(key, dict, ... if required else {})
        return _Table(f"{self.where}: [{key}]", values)

    def finish(self) -> None:
        if self.values:
            raise FaultError(f"{self.where}: unknown key {', '.join(sorted(self.values))}")


def load_fault(folder: Path) -> Fault:
    """Read `folder/fault.toml`. Raises FaultError with file, key and what was expected."""
    file = folder / "fault.toml"
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FaultError(f"{file}: no such file; a fault folder needs a fault.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FaultError(f"{file}: not valid TOML: {error}") from None
    top = _Table(str(file), raw)
    run = _read_run(top.table("run", required=True))
    needs = _read_needs(top.table("needs", required=False))
    cure = _read_cure(top.table("cured", required=False)) if "cured" in top.values else None
    healthy: bool = top.take("healthy", bool)
    truth = {} if healthy else _read_truth(top, run)
    fault = Fault(
        folder=folder.resolve(),
        title=top.take("title", str),
        framework=top.choice("framework", FRAMEWORKS),
        healthy=healthy,
        split=top.choice("split", SPLITS),
        run=run,
        needs=needs,
        cure=cure,
        quick=top.take("quick", bool, False),
        group=top.take("group", str, None),
        says=top.take("says", str, None),
        line=top.take("line", str, None),
        verify=top.many("verify", str, []),
        **truth,
    )
    top.finish()
    return fault


def load_zoo(root: Path) -> list[Fault]:
    """All faults below `root`, by name."""
    return [load_fault(file.parent) for file in sorted(root.glob("*/fault.toml"))]


def _read_run(table: _Table) -> RunPlan:
    plan = RunPlan(
        launcher=table.take("launcher", str),
        command=table.many("command", str),
        world_size=table.take("world_size", int),
        timeout_s=float(table.take("timeout_s", int)),
        layout=table.choice("layout", LAYOUTS),
        env=table.strings("env"),
        rank_env=table.strings_by_rank("rank_env"),
        start=table.many("start", int, []),
        prepare=table.commands("prepare"),
        ends_well=table.take("ends_well", bool, False),
        shows=table.take("shows", str, None),
    )
    table.finish()
    if not plan.command:
        raise table.fail("command", "is empty")
    if plan.world_size < 1 or plan.timeout_s <= 0:
        raise table.fail("world_size, timeout_s", "must be above zero")
    if plan.layout != "per-rank" and (plan.rank_env or plan.start):
        raise table.fail("rank_env, start", "only the layout per-rank starts single ranks")
    if plan.shows is not None:
        try:
            re.compile(plan.shows)
        except re.error as error:
            raise table.fail("shows", f"is no regular expression: {error}") from None
    return plan


def _read_needs(table: _Table) -> Needs:
    needs = Needs(
        python=table.many("python", str, []),
        debian=table.many("debian", str, []),
        memory_mb=table.take("memory_mb", int, None),
        alone=table.take("alone", bool, False),
    )
    table.finish()
    return needs


def _read_cure(table: _Table) -> Cure:
    given = set(table.values)
    cure = Cure(
        command=table.many("command", str) if "command" in given else None,
        env=table.strings("env") if "env" in given else None,
        rank_env=table.strings_by_rank("rank_env") if "rank_env" in given else None,
        start=table.many("start", int) if "start" in given else None,
        prepare=table.commands("prepare") if "prepare" in given else None,
        environment=table.take("environment", str, None),
        timeout_s=float(table.take("timeout_s", int)) if "timeout_s" in given else None,
    )
    table.finish()
    return cure


def _read_truth(top: _Table, run: RunPlan) -> dict[str, Any]:
    truth = {
        "symptom": top.take("symptom", str),
        "cause": top.pattern("cause", _KEBAB, "uneven-steps"),
        "stage": top.choice("stage", STAGES),
        "distributed_specific": top.take("distributed_specific", bool),
        "culprit_ranks": top.many("culprit_ranks", int),
        "accepted_fixes": top.many("accepted_fixes", str),
    }
    if truth["symptom"] not in SYMPTOMS:
        raise top.fail("symptom", f"{truth['symptom']!r} is none of the 30; `phalanx rules symptoms` lists them")
    outside = [rank for rank in truth["culprit_ranks"] if not 0 <= rank < run.world_size]
    if outside:
        raise top.fail("culprit_ranks", f"{outside} outside of world_size {run.world_size}")
    if not truth["accepted_fixes"]:
        raise top.fail("accepted_fixes", "is empty; name at least one fix pattern")
    for fix in truth["accepted_fixes"]:
        if fix not in FIX_PATTERNS:
            raise top.fail("accepted_fixes", f"{fix!r} is no fix pattern; `phalanx rules fixes` lists them")
    return truth
