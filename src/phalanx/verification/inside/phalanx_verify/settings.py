"""What the observer of one rank was told."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

_DENSE = 12  # steps at the start that are all looked at
_SPARSE = ((64, 8), (512, 32))  # below this step, every so many; beyond, every 128th


@dataclass(frozen=True)
class Settings:
    """One rank's part. Paths are absolute."""

    rank: int
    size: int
    folder: str  # where the rank writes its evidence
    script: str = ""  # the folder whose sources are the user's own
    steps: int = 0  # end the run after so many steps; 0 for its own end
    epochs: int = 0  # end it when a training loader is begun for the time after these
    seconds: float = 0.0  # end it when so many seconds of training are over and at least `least` steps
    least: int = 50
    dense: int = _DENSE  # steps at the start that are all looked at
    kill: int = 0  # end the rank by SIGKILL after so many steps, when all ranks have come so far
    keep: int = 0  # batches of each loader that are kept on disk
    give: tuple[str, ...] = ()  # folders of ranks whose batches, joined, are given in place of this run's own
    spawns: str = ""  # "child": a rank that the script started itself, whose number shows when it makes its group
    sample: bool = False  # a long run: look at few steps, spend little

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Settings:
        """Unknown names are ignored, so that an older inside can be told by a newer outside."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in told.items() if name in known})

    def looks_at(self, step: int) -> bool:
        """Whether this step is fingerprinted. All ranks must choose the same ones, so only its number decides."""
        if self.sample:
            return step in (0, 1) or step % 500 == 0
        if step < self.dense:
            return True
        return next((step % every == 0 for below, every in _SPARSE if step < below), step % 128 == 0)
