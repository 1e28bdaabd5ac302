"""What the recorder or the replay of one rank was told."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Settings:
    """One rank's part. Paths are absolute; what does not concern recording or replaying keeps its default."""

    rank: int
    size: int
    folder: str  # the rank's own record folder, to be written or to be read
    replays: bool = False
    mode: str = "full"  # light, ring, full
    seed: int = 0  # for what the script leaves unseeded
    script: str = ""  # the folder whose sources are the user's own
    keep_steps: int = 4  # ring: results are kept for at least so many steps
    every_steps: int = 0  # a checkpoint after so many steps; 0 for none
    every_seconds: float = 0.0
    room: int = -1  # ring: a descriptor of memory that outlives the rank; see `segments`
    native: str = ""  # a compiled words.c; see `fingerprints`
    request: str = ""  # a file whose appearance asks for the ring to be written
    # replay
    attempt: str = ""  # the attempt's folder, where the other ranks' shares are
    result: str = ""  # folder for what the replay found
    first: int = 0  # --from
    last: int = -1  # --to; -1 for the end
    debugger: bool = False
    condition: str = ""  # --break
    trusts_objects: bool = False
    with_peers: bool = False  # --all: real collectives, only compared

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Settings:
        """Unknown names are ignored, so that an older inside can be told by a newer outside."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in told.items() if name in known})

    def rank_folder(self, rank: int) -> str:
        """Where another rank of the recorded attempt kept its record."""
        return os.path.join(self.attempt, f"rank{rank}", "record")
