"""What is known of a checkpoint: its files, their tensors, what state they hold, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from phalanx.model import Unchecked

NOT_THERE = "it is not there"


class CheckpointError(Exception):
    """What was named cannot be examined: it is not there, no checkpoint, or of no known format."""


class Kind(StrEnum):
    """What a tensor is for."""

    MODEL = "model"
    OPTIMIZER = "optimizer"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a file."""

    path: Path
    offset: int
    length: int
    crc: int | None = None  # the checksum that the file itself gives for them

    @property
    def key(self) -> tuple[Path, int, int]:
        """Spans with the same key are the same bytes."""
        return self.path, self.offset, self.length


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: `span` is its storage, of which it has `start` to `start + size` bytes if `is_plain`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    kind: Kind = Kind.MODEL
    span: Span | None = None
    start: int = 0
    size: int = 0
    is_plain: bool = True  # its values lie one behind the other
    sharding: str = ""  # of a part of a larger tensor: which one it is
    whole: tuple[int, ...] = ()  # the larger tensor's shape

    @property
    def full_shape(self) -> tuple[int, ...]:
        """The shape that the model knows it by."""
        return self.whole or self.shape


class Trouble(StrEnum):
    """What is wrong with a file."""

    MISSING = "missing"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    RUNS_CODE = "runs-code"
    STALE = "stale"
    POINTER = "pointer"
    MISPLACED = "misplaced"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with one file; `detail` is a clause that can follow the file's name and a colon."""

    trouble: Trouble
    file: str
    detail: str
    rank: int | None = None


STATES = ("model", "optimizer", "scheduler", "scaler", "random", "sampler")


@dataclass(slots=True)
class Part:
    """One file, and the rank that wrote it, if that is known."""

    file: str
    rank: int | None = None
    bytes: int = 0
    tensors: list[Tensor] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)  # of STATES: what is there, in a word
    stamps: dict[str, float] = field(default_factory=dict)  # step, epoch, iteration …
    needs: tuple[str, ...] = ()  # classes that loading imports beyond torch, NumPy and builtins
    must_agree: bool = True  # its stamps are those of the other parts


@dataclass(slots=True)
class Checkpoint:
    """Everything that was read of one checkpoint."""

    path: Path
    format: str
    parts: list[Part] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)
    world_size: int | None = None
    parallelism: dict[str, int] = field(default_factory=dict)  # data, tensor, pipeline, zero stage …
    fixed_world: str = ""  # why it loads only on as many ranks as saved it
    framework: str = "torch"
    step: str = ""  # the folder or file within that `latest` and its like name
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tensors(self) -> Iterator[Tensor]:
        """Those of all parts."""
        for part in self.parts:
            yield from part.tensors

    @property
    def is_complete(self) -> bool:
        """Whether every file is there and whole."""
        bad = {Trouble.MISSING, Trouble.TRUNCATED, Trouble.CORRUPT, Trouble.POINTER}
        return not any(problem.trouble in bad for problem in self.problems)

    def trouble(self, trouble: Trouble, file: str, detail: str, rank: int | None = None) -> None:
        """Note a problem."""
        self.problems.append(Problem(trouble, file, detail, rank))

    def weights(self) -> dict[str, Tensor]:
        """The model's tensors by name; parts of one tensor count once."""
        found: dict[str, Tensor] = {}
        for tensor in self.tensors:
            if tensor.kind is Kind.MODEL:
                found.setdefault(tensor.name, tensor)
        return found
