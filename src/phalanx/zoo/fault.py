"""A fault of the zoo: the typed form of `faults/<name>/fault.toml`, and the loader that refuses a bad one.

A folder looks like this:

    faults/torch-uneven-steps/
      fault.toml     what is broken, what the truth is, how to run it
      train.py       the job
      cured.py       the same job mended (or a [cured] table in fault.toml)
      recorded/      what a user would have after the run
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FRAMEWORKS = ("torch", "tensorflow", "keras", "horovod")
STAGES = (
    "package build & import",
    "communication setup",
    "data and model preparation",
    "training & evaluation",
)
SPLITS = ("train", "test")
LAYOUTS = ("merged", "per-rank", "per-node", "torchrun-logdir")

_SYMPTOM = re.compile(r"(build|comm|prep|fail|perf)\.[a-z]+(-[a-z]+)*")
_KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class FaultError(ValueError):
    """A fault folder that cannot be used; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How a fault's job is started and what a user keeps of it.

    `env` holds for every process; an empty value takes the variable away. In the layout `per-rank`,
    `rank_env` changes variables of single ranks and `start` names the ranks that are started at all.
    """

    launcher: str
    command: tuple[str, ...]
    world_size: int
    timeout_s: float
    layout: str
    env: Mapping[str, str] = field(default_factory=dict)
    rank_env: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    start: tuple[int, ...] = ()

    @property
    def started_ranks(self) -> tuple[int, ...]:
        return self.start or tuple(range(self.world_size))


@dataclass(frozen=True, slots=True)
class Cure:
    """What changes in the run when the cure is not in the script; None leaves a part as it is."""

    command: tuple[str, ...] | None = None
    env: Mapping[str, str] | None = None
    rank_env: Mapping[int, Mapping[str, str]] | None = None
    start: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One folder of the zoo. A healthy control has no symptom, cause, stage or fixes."""

    folder: Path
    title: str
    framework: str
    healthy: bool
    split: str
    run: RunPlan
    symptom: str | None = None
    cause: str | None = None
    stage: str | None = None
    distributed_specific: bool | None = None
    culprit_ranks: tuple[int, ...] = ()
    accepted_fixes: tuple[str, ...] = ()
    needs_python: tuple[str, ...] = ()
    needs_debian: tuple[str, ...] = ()
    cure: Cure | None = None

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def recorded(self) -> Path:
        return self.folder / "recorded"


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
    needs = top.table("needs", required=False)
    python, debian = needs.many("python", str, []), needs.many("debian", str, [])
    needs.finish()
    cure = _read_cure(top.table("cured", required=False)) if "cured" in top.values else None
    healthy: bool = top.take("healthy", bool)
    truth: dict[str, Any] = {}
    if not healthy:
        truth = {
            "symptom": top.pattern("symptom", _SYMPTOM, "perf.hang"),
            "cause": top.pattern("cause", _KEBAB, "uneven-steps"),
            "stage": top.choice("stage", STAGES),
            "distributed_specific": top.take("distributed_specific", bool),
            "culprit_ranks": top.many("culprit_ranks", int),
            "accepted_fixes": top.many("accepted_fixes", str),
        }
        _check_truth(top, truth, run)
    fault = Fault(
        folder=folder.resolve(),
        title=top.take("title", str),
        framework=top.choice("framework", FRAMEWORKS),
        healthy=healthy,
        split=top.choice("split", SPLITS),
        run=run,
        needs_python=python,
        needs_debian=debian,
        cure=cure,
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
    )
    table.finish()
    if not plan.command:
        raise table.fail("command", "is empty")
    if plan.world_size < 1 or plan.timeout_s <= 0:
        raise table.fail("world_size, timeout_s", "must be above zero")
    if plan.layout != "per-rank" and (plan.rank_env or plan.start):
        raise table.fail("rank_env, start", "only the layout per-rank starts single ranks")
    return plan


def _read_cure(table: _Table) -> Cure:
    given = set(table.values)
    cure = Cure(
        command=table.many("command", str) if "command" in given else None,
        env=table.strings("env") if "env" in given else None,
        rank_env=table.strings_by_rank("rank_env") if "rank_env" in given else None,
        start=table.many("start", int) if "start" in given else None,
    )
    table.finish()
    return cure


def _check_truth(top: _Table, truth: Mapping[str, Any], run: RunPlan) -> None:
    outside = [rank for rank in truth["culprit_ranks"] if not 0 <= rank < run.world_size]
    if outside:
        raise top.fail("culprit_ranks", f"{outside} outside of world_size {run.world_size}")
    if not truth["accepted_fixes"]:
        raise top.fail("accepted_fixes", "is empty; name at least one fix pattern")
    for fix in truth["accepted_fixes"]:
        if not _KEBAB.fullmatch(fix):
            raise top.fail("accepted_fixes", f"{fix!r} is not a fix pattern's id (kebab case)")
