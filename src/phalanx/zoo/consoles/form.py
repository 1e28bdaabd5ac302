"""A form: how the output of a job reaches a user (launcher, prefixes, files, what is lost); found by scanning `forms/`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from phalanx.zoo.consoles import forms
from phalanx.zoo.consoles.job import Job
from phalanx.zoo.consoles.stage import Line, Stage


def _everything(lines: Sequence[Line], stage: Stage) -> list[Line]:
    return list(lines)


def _no_prefix(line: Line, stage: Stage) -> str:
    return ""


def by_node(line: Line, stage: Stage) -> str:
    """One file for each node, as plain torchrun leaves it."""
    return "console.log" if stage.job.nodes == 1 else f"{stage.job.hosts[line.node]}.log"


def merged(line: Line, stage: Stage) -> str:
    return "console.log"


def by_rank(line: Line, stage: Stage) -> str:
    """One file for each rank; what is nobody's goes into the launcher's."""
    return f"rank_{line.rank}.log" if line.rank is not None else "launcher.log"


def all_ranks(stage: Stage) -> set[int]:
    return set(range(stage.job.world))


@dataclass(frozen=True, slots=True)
class Form:
    """How lines become files.

    `nccl`: what NCCL_DEBUG asks for (`off`, `warn`, `info`). `keep` leaves lines out; `covers` are the ranks whose
    whole output is kept. `labels`: the form itself says of every line which global rank printed it. `kernel`: the
    kernel logs of the hosts are among the files. `has_rank_files`: each rank has a file of its own. `finish` works on the text of a file at last.
    """

    name: str
    title: str
    launcher: str = "torchrun"
    style: str = "plain"
    nccl: str = "off"
    file: Callable[[Line, Stage], str] = by_node
    prefix: Callable[[Line, Stage], str] = _no_prefix
    keep: Callable[[Sequence[Line], Stage], list[Line]] = _everything
    covers: Callable[[Stage], set[int]] = all_ranks
    labels: Callable[[Job], bool] = lambda job: False
    kernel: bool = False
    has_rank_files: bool = False
    finish: Callable[[str, Stage], str] | None = None
    nodes: int | None = None
    most: int = 1024

    def wants(self, line: Line) -> bool:
        """Whether NCCL_DEBUG and the choice of files let the line through."""
        if line.source == "kernel":
            return self.kernel
        shown = {"nccl-warn": ("warn", "info"), "nccl-info": ("info",), "nccl-version": ("warn", "info")}
        return self.nccl in shown.get(line.kind, (self.nccl,))

    def kept(self, stage: Stage) -> list[Line]:
        """The lines that reach the user, in order of time."""
        lines = sorted((line for line in stage.lines if self.wants(line)), key=lambda line: line.at)
        return self.keep(lines, stage)

    def files(self, kept: Sequence[Line], stage: Stage) -> dict[str, str]:
        """File names and texts."""
        parts: dict[str, list[str]] = {}
        if self.has_rank_files:  # a rank that printed nothing leaves an empty file
            for at in (0.0, *stage.restarts):
                for rank in sorted(self.covers(stage)):
                    parts[self.file(Line(at, "rank", stage.job.node(rank), rank, ""), stage)] = []
        for line in kept:
            kernel = line.source == "kernel"
            name = f"dmesg-{stage.job.hosts[line.node]}.log" if kernel else self.file(line, stage)
            prefix = "" if kernel else self.prefix(line, stage)
            parts.setdefault(name, []).extend(prefix + text for text in line.text.split("\n"))
        texts = {name: "".join(f"{line}\n" for line in lines) for name, lines in parts.items()}
        return {name: self.finish(text, stage) if self.finish else text for name, text in texts.items()}


@cache
def all_forms() -> dict[str, Form]:
    """Every form of every module in `forms/`, by name."""
    found: dict[str, Form] = {}
    for module in pkgutil.iter_modules(forms.__path__):
        for one in importlib.import_module(f"{forms.__name__}.{module.name}").FORMS:
            if one.name in found:
                raise ValueError(f"two forms are called {one.name}")
            found[one.name] = one
    return dict(sorted(found.items()))
