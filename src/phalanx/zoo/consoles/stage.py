"""The stage on which a fault is played: a clock, the job, and every line that any program prints, with its origin."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from phalanx.zoo.consoles.formats import formats, render
from phalanx.zoo.consoles.job import Group, Job
from phalanx.zoo.consoles.program import Position

EPOCH = datetime(2025, 3, 11, 7, 0)


@dataclass(frozen=True, slots=True)
class Line:
    """One write of a program (it may hold several lines).

    `source`: `rank`, `agent` (the launcher on a node), `scheduler` (what the user's terminal gets besides) or `kernel`.
    `kind` lets a form leave it out: `step`, `start`, `nccl-warn`, `nccl-info`, `text`. `tells`: what it proves of the
    truth, of `who`, `why`, `what`; `named`: its own text names the global rank, without the form's help.
    """

    at: float
    source: str
    node: int
    rank: int | None
    text: str
    kind: str = "text"
    tells: frozenset[str] = frozenset()
    named: bool = False
    waits: bool = False


@dataclass(slots=True)
class Stage:
    """What a situation plays on. Times are seconds since the job began; `lines` is filled as the fault unfolds."""

    job: Job
    rng: random.Random
    style: str
    launcher: str
    clock: float = 0.0
    steps: int = 0
    lines: list[Line] = field(default_factory=list)
    deaths: list[tuple[float, int, int]] = field(default_factory=list)
    restarts: list[float] = field(default_factory=list)  # when the elastic agent starts the group again

    def when(self, at: float) -> datetime:
        return EPOCH + timedelta(days=self.job.seed % 200, seconds=at + self.job.seed % 40000)

    # who prints ---------------------------------------------------------------------------------------------------

    def rank(
        self,
        rank: int,
        text: str,
        *,
        at: float | None = None,
        kind: str = "text",
        tells: str = "",
        named: bool = False,
        waits: bool = False,
    ) -> None:
        """A process prints."""
        when = self.clock if at is None else at
        said = frozenset(tells.split())
        self.lines.append(Line(when, "rank", self.job.node(rank), rank, text, kind, said, named, waits))

    def agent(self, node: int, text: str, *, at: float | None = None, tells: str = "", kind: str = "text") -> None:
        """The launcher on a node prints; what it tells, it tells with rank or pid."""
        when = self.clock if at is None else at
        self.lines.append(Line(when, "agent", node, None, text, kind, frozenset(tells.split()), named=True))

    def scheduler(self, text: str, *, at: float | None = None, tells: str = "") -> None:
        when = self.clock if at is None else at
        self.lines.append(Line(when, "scheduler", 0, None, text, "text", frozenset(tells.split()), named=True))

    def kernel(self, node: int, text: str, *, at: float | None = None, tells: str = "") -> None:
        """The kernel of a host writes; a form without kernel logs loses it."""
        when = self.clock if at is None else at
        head = render("kernel", "head", "any", seconds=88000 + self.job.seed % 1000000 + when)
        self.lines.append(Line(when, "kernel", node, None, head + text, "kernel", frozenset(tells.split()), named=True))

    # how it is printed --------------------------------------------------------------------------------------------

    def c10(self, rank: int, name: str, /, *, at: float, tells: str = "", waits: bool = False, **fields: Any) -> None:
        """A statement of PyTorch's C++ side, with the head of its release; nothing where the release has it not."""
        release = self.job.torch
        text = render("torch", name, release, **fields)
        if not text:
            return
        head = self.c10_head(rank, at, formats("torch")[name].line(release), fields.get("level", "head"))
        # before 2.2 the head has no rank: only the rank within the group stands in the text
        group = fields.get("of")
        named = "[rank" in head or (isinstance(group, Group) and group.uid == 0 and "[Rank " in text)
        self.rank(rank, head + text, at=at, tells=tells, named=named, waits=waits)

    def c10_head(self, rank: int, at: float, line: int, level: object = "head") -> str:
        when = self.when(at)
        glog = f"{when:%m%d %H:%M:%S}.{when.microsecond:06d}{self.rng.randrange(1000):03d}".lstrip("0")
        return render(
            "torch", f"c10.{level}", self.job.torch, rank=rank, file="ProcessGroupNCCL.cpp", line=line, glog=glog
        )

    def nccl(self, rank: int, name: str, /, *, at: float | None = None, tells: str = "", **fields: Any) -> str:
        """A WARN of NCCL, printed where NCCL_DEBUG asks for it; its text is also NCCL's last error."""
        release = self.job.nccl
        text = render("nccl", name, release, **fields)
        form = formats("nccl")[name]
        head = render(
            "nccl",
            "warn",
            release,
            host=self.job.host(rank),
            pid=self.job.pids[rank],
            tid=self.job.pids[rank] + 300 + self.rng.randrange(90),
            device=self.job.local(rank),
            file=form.source.split(",")[0].split(" ")[0].removeprefix("src/"),
            line=form.line(release) or 100,
            text=text,
        )
        if text:
            self.rank(rank, head, at=at, kind="nccl-warn", tells=tells)
        return text

    def nccl_info(self, rank: int, name: str, /, *, at: float | None = None, **fields: Any) -> None:
        release = self.job.nccl
        text = render("nccl", name, release, **fields)
        if not text:
            return
        head = render(
            "nccl",
            "info",
            release,
            host=self.job.host(rank),
            pid=self.job.pids[rank],
            tid=self.job.pids[rank] + 300,
            device=self.job.local(rank),
            text=text,
        )
        self.rank(rank, head, at=at, kind="nccl-info")

    def python(self, rank: int, lines: str, *, at: float | None = None, tells: str = "", named: bool = False) -> None:
        """A traceback of Python, each line with the head that newer releases put before it."""
        head = render("torch", "python.head", self.job.torch, rank=rank)
        text = "\n".join(head + line for line in lines.rstrip("\n").split("\n"))
        self.rank(rank, text, at=at, tells=tells, named=named or bool(head))

    def launch(self, name: str, /, **fields: Any) -> str:
        """A statement of a launcher with its time stamps."""
        when = self.when(float(str(fields.pop("at", self.clock))))
        release = self.job.torch if name.startswith("torchrun") else "any"
        line = formats("launchers")[name].line(release)
        return render(
            "launchers",
            name,
            release,
            stamp=f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03d}",
            glog_py=f"{when:%m%d %H:%M:%S}.{when.microsecond // 1000:03d}000",
            iso=f"{when:%Y-%m-%dT%H:%M:%S}",
            line=line,
            **fields,
        )

    def mark(self, words: str, tells: str) -> None:
        """All lines with these words tell so much."""
        said = frozenset(tells.split())
        self.lines = [replace(line, tells=line.tells | said) if words in line.text else line for line in self.lines]

    # small helps --------------------------------------------------------------------------------------------------

    def pick(self) -> int:
        """A rank of the job, rarely the first or last."""
        return self.rng.randrange(self.job.world)

    def group_fields(self, group: Group, rank: int) -> dict[str, Any]:
        named = "" if group.name == "undefined" else f"({group.name})"
        return {
            "of": group,
            "group": render(
                "torch",
                "group",
                self.job.torch,
                pg_id=self.job.group_id(group, rank),
                pg_uid=group.uid,
                desc=named,
                desc_apart=f" {named}" if named else "",
                group_rank=group.ranks.index(rank),
            ),
            "group_rank": group.ranks.index(rank),
        }

    def work(self, rank: int, position: Position, op: str | None = None, numel: int | None = None) -> str:
        call = position.call
        if call is None:
            raise ValueError(f"rank {rank} waits in no call")
        return render(
            "torch",
            "work",
            self.job.torch,
            seq=position.seq,
            op=op or call.op_of(rank),
            numel_in=call.numel_in if numel is None else numel,
            numel_out=call.numel_out if numel is None else numel * call.numel_out // call.numel_in or 1,
            timeout=self.job.timeout_ms,
        )
