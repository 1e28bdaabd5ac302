"""What the observers of all ranks wrote, as typed values: the only thing that checks look at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

Sketch = tuple[float, ...]  # two projections and the norm; of a rank's own gradient the projections only
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that an optimizer holds, as this rank sees it."""

    model: int | None  # -1: in none that was called; None: in none at all
    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    group: int  # of the optimizer's parameter groups
    shard: Any = None  # None for a whole tensor; else where this rank's part lies

    @property
    def is_whole(self) -> bool:
        """Whether every rank that holds it should hold all of it."""
        return self.shard is None


@dataclass(frozen=True)
class Optimizer:
    """An optimizer and what it holds."""

    number: int
    cls: str
    line: str
    parameters: tuple[Parameter, ...]
    hyper: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Step:
    """One step of one optimizer. Lists go by the optimizer's parameters; they are empty where the step was not looked at."""

    optimizer: int
    number: int  # of this optimizer's steps, from 0
    step: int  # the pass, from 0
    line: str
    lr: tuple[float | None, ...]
    events: tuple[tuple[str, Record], ...]  # what happened since the step before, in order
    before: tuple[Sketch | None, ...] = ()  # parameters
    grad: tuple[Sketch | None, ...] = ()
    own: tuple[Sketch | None, ...] = ()  # what this rank's backward passes brought
    carried: tuple[int, ...] = ()  # 1: the gradient of the step before had not been cleared
    after: tuple[Sketch | None, ...] = ()
    state: tuple[Any, ...] = ()  # of each parameter a list of fingerprints
    state_before: tuple[Any, ...] | None = None  # only of an optimizer's first step
    unheld: tuple[tuple[int, str, Sketch | None], ...] = ()  # in no optimizer: model, name, fingerprint
    buffers: tuple[tuple[int, str, Sketch | None], ...] = ()  # model, name, fingerprint
    made: int = 0  # collectives over all ranks that this rank had called by then
    skipped: bool = False
    closure: bool = False

    @property
    def is_looked_at(self) -> bool:
        """Whether there are fingerprints."""
        return bool(self.after)

    def all(self, kind: str) -> list[Record]:
        """The events of one kind."""
        return [fields for name, fields in self.events if name == kind]


@dataclass(frozen=True, eq=False)
class RankEvidence:
    """All records of one rank, in order, and the most asked for of them."""

    rank: int
    records: tuple[Record, ...]

    def all(self, kind: str) -> list[Record]:
        """Records of a kind: `group`, `model`, `wrapped`, `loader`, `epoch`, `batch`, `eval`, `seed`, `scheduler`, `save`, …"""
        return self._by_kind.get(kind, [])

    @cached_property
    def _by_kind(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        for record in self.records:
            found.setdefault(str(record["k"]), []).append(record)
        return found

    @cached_property
    def optimizers(self) -> dict[int, Optimizer]:
        """By number, as they were last told."""
        return {int(one["o"]): _optimizer(one) for one in self.all("optimizer")}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All steps of all optimizers, in order."""
        return tuple(_step(one) for one in self.all("step"))

    def steps_of(self, optimizer: int) -> dict[int, Step]:
        """Steps of one optimizer by their number."""
        return {step.number: step for step in self.steps if step.optimizer == optimizer}

    @cached_property
    def events(self) -> tuple[tuple[str, Record], ...]:
        """Every event of the rank, those after its last step too."""
        last = [(str(kind), fields) for end in self.all("end") for kind, fields in end.get("events", ())]
        return tuple([event for step in self.steps for event in step.events] + last)

    @cached_property
    def wrapped(self) -> dict[int, Record]:
        """DDP models by their number."""
        return {int(one["m"]): one for one in self.all("wrapped")}

    def groups(self) -> dict[str, tuple[int, ...]]:
        """Members of the process groups that were used, by name."""
        return {str(one["name"]): tuple(one["members"]) for one in self.all("group")}


@dataclass(frozen=True, eq=False)
class Evidence:
    """The whole job."""

    ranks: Mapping[int, RankEvidence]
    size: int
    folder: Path | None = None  # the user's sources, to quote lines from
    framework: str = "torch"
    notes: tuple[str, ...] = field(default=())
    _texts: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of the user's files that were read

    @cached_property
    def optimizers(self) -> tuple[int, ...]:
        """Numbers of the optimizers that stepped on any rank."""
        return tuple(sorted({step.optimizer for one in self.ranks.values() for step in one.steps}))

    def holders(self, optimizer: int) -> dict[int, Optimizer]:
        """By rank: what each of them holds, of the ranks that hold the same names in the same order."""
        held = {rank: one.optimizers[optimizer] for rank, one in self.ranks.items() if optimizer in one.optimizers}
        names = {rank: tuple((p.name, p.shape) for p in one.parameters) for rank, one in held.items()}
        common = max(names.values(), key=list(names.values()).count, default=())
        return {rank: held[rank] for rank in held if names[rank] == common}

    def common_steps(self, optimizer: int) -> Iterator[tuple[int, dict[int, Step]]]:
        """Steps that were looked at on all ranks that hold this optimizer alike: number, and each rank's own.

        Ranks that took another number of steps before (uneven data under `join`) are at another place of their collectives:
        such steps are left out.
        """
        holders = self.holders(optimizer)
        by_rank = {rank: self.ranks[rank].steps_of(optimizer) for rank in holders}
        if not by_rank:
            return
        for number in sorted(set.intersection(*(set(steps) for steps in by_rank.values()))):
            found = {rank: steps[number] for rank, steps in by_rank.items()}
            places = {step.made for step in found.values()}
            if len(places) == 1 and all(step.is_looked_at for step in found.values()):
                yield number, found

    def source(self, place: str) -> str:
        """The text of `train.py:25`, if the file can be read."""
        name, _, number = place.rpartition(":")
        lines = self.lines(name) if number.isdigit() else ()
        return lines[int(number) - 1].strip()[:200] if number.isdigit() and 0 < int(number) <= len(lines) else ""

    def lines(self, name: str) -> tuple[str, ...]:
        """All lines of one of the user's files; none if it cannot be read."""
        if self.folder is None or not name:
            return ()
        if name not in self._texts:
            self._texts[name] = _lines_of(self.folder / name)
        return self._texts[name]


def read(files: Mapping[int, Path], size: int, folder: Path | None = None, framework: str = "torch") -> Evidence:
    """The evidence in the files of all ranks. A line that was cut off by a kill is left out."""
    found = {rank: RankEvidence(rank, tuple(_all_records(path))) for rank, path in files.items() if path.is_file()}
    return Evidence(found, size, folder, framework)


def read_spawned(file: Path, size: int, folder: Path | None = None, framework: str = "torch") -> Evidence:
    """The evidence of ranks that the script started itself: they lie below the process that did, and say which rank they became."""
    found: dict[int, RankEvidence] = {}
    for path in sorted(file.parent.glob(f"spawned-*/{file.name}")):
        records = tuple(_all_records(path))
        became = next((record for record in records if record["k"] == "rank"), None)
        if became is not None:
            found[int(became["rank"])] = RankEvidence(int(became["rank"]), records)
            size = int(became["size"])
    return Evidence(found, size, folder, framework)


def _all_records(path: Path) -> Iterator[Record]:
    """The rank's own, then what its loader workers wrote beside it, in the order of their first."""
    yield from _records(path)
    for beside in sorted(path.parent.glob(f"{path.stem}-worker-*{path.suffix}"), key=lambda one: one.stat().st_mtime):
        yield from _records(beside)


def _lines_of(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()


def _records(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                record = json.loads(text)
            except ValueError:
                continue
            if isinstance(record, dict) and "k" in record:
                yield record


def _optimizer(record: Record) -> Optimizer:
    parameters = tuple(
        Parameter(model, name, tuple(shape), dtype, trainable, group, _hashable(shard))
        for model, name, shape, dtype, trainable, group, shard in record["parameters"]
    )
    return Optimizer(int(record["o"]), record["cls"], record["line"], parameters, tuple(record.get("hyper", ())))


def _step(record: Record) -> Step:
    def sketches(name: str) -> tuple[Sketch | None, ...]:
        return tuple(None if one is None else tuple(one) for one in record.get(name) or ())

    return Step(
        optimizer=int(record["o"]),
        number=int(record["n"]),
        step=int(record["step"]),
        line=str(record.get("line", "")),
        lr=tuple(record.get("lr") or ()),
        events=tuple((str(kind), fields) for kind, fields in record.get("events", ())),
        before=sketches("before"),
        grad=sketches("grad"),
        own=sketches("own"),
        carried=tuple(record.get("carried") or ()),
        after=sketches("after"),
        state=tuple(record.get("state") or ()),
        state_before=tuple(record["state_before"]) if record.get("state_before") is not None else None,
        unheld=tuple((int(m), str(name), _hashable(value)) for m, name, value in record.get("unheld") or ()),
        buffers=tuple((int(m), str(name), _hashable(value)) for m, name, value in record.get("buffers") or ()),
        made=int(record.get("made", 0)),
        skipped=bool(record.get("skipped")),
        closure=bool(record.get("closure")),
    )


def _hashable(value: Any) -> Any:
    return tuple(_hashable(one) for one in value) if isinstance(value, list) else value
