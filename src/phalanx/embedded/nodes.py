"""What the companions of a job's nodes tell one another, in files of the bundle: which ranks run, which hang, and how the others ended.

`nodes/HOST.json` is rewritten every two seconds. The companion of the lowest living rank leads: it alone asks for verdicts and speaks.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phalanx import private
from phalanx.embedded.folders import NODES

_EVERY_S = 2.0
SILENT_S = 20.0  # after which a node that had living ranks is lost


@dataclass(frozen=True, slots=True)
class Node:
    """A node as its companion last told, and how long ago that was by the file server's clock."""

    host: str
    living: tuple[int, ...]
    exits: Mapping[int, int | None]
    stalled: float | None  # when its ranks were last found to stand still
    ended: bool
    age: float = 0.0

    @property
    def is_silent(self) -> bool:
        """It should tell something, and does not."""
        return not self.ended and self.age > SILENT_S

    @property
    def has_failed(self) -> bool:
        """Whether a rank of it ended badly, or nobody knows how."""
        return any(code != 0 for code in self.exits.values())


@dataclass(slots=True)
class Nodes:
    """This node's own record and those of the others."""

    bundle: Path
    host: str
    stalled: float | None = None
    hub: str | None = None  # the host that has all evidence, where nodes share no folder
    _written: float = 0.0
    _others: list[Node] = field(default_factory=list)

    def tell(self, living: Mapping[int, int], exits: Mapping[int, int | None], ended: bool = False) -> None:
        """Write down how this node is, if that is due, and read what the others say."""
        now = time.monotonic()
        if now - self._written < _EVERY_S and not ended:
            return
        self._written = now
        told = {"host": self.host, "pid": os.getpid(), "living": list(living), "exits": exits, "ended": ended}
        file = self.bundle / NODES / f"{self.host}.json"
        part = file.with_suffix(".part")
        with contextlib.suppress(OSError):
            private.write_text(part, json.dumps({**told, "stalled": self.stalled}))
            part.replace(file)
            self._others = self._read(file.stat().st_mtime)

    def _read(self, now: float) -> list[Node]:
        found = []
        for path in sorted((self.bundle / NODES).glob("*.json")):
            if path.stem != self.host:
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    found.append(_node(json.loads(path.read_text(encoding="utf-8")), now - path.stat().st_mtime))
        return found

    @property
    def others(self) -> list[Node]:
        """The nodes but this one."""
        return self._others

    def leads(self, living: Mapping[int, int], known: Mapping[int, Any]) -> bool:
        """Whether this companion speaks for the job: it has the lowest living rank; where none lives, the lowest of all.
        Without a shared folder it is the one to whom the others send their evidence, for as long as it is there."""
        if self.hub == self.host:
            return True
        if any(node.host == self.hub and not node.is_silent for node in self._others):
            return False
        others = [rank for node in self._others if not node.is_silent for rank in node.living]
        if living or others:
            return bool(living) and min(living) < min(others, default=1 << 30)
        ended = [rank for node in self._others for rank in node.exits]
        return min(known, default=1 << 30) < min(ended, default=1 << 30)


def _node(told: Mapping[str, Any], age: float) -> Node:
    return Node(
        str(told["host"]),
        tuple(int(rank) for rank in told["living"]),
        {int(rank): code for rank, code in dict(told["exits"]).items()},
        told.get("stalled"),
        bool(told["ended"]),
        age,
    )
