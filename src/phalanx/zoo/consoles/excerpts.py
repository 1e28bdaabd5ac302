"""Short excerpts of real consoles from public issues, labelled before they were diagnosed: `faults/consoles/*.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from phalanx.zoo.consoles.cell import Console, Truth
from phalanx.zoo.fault import FaultError

SPLIT = "real excerpts"
_KEYS = {"source", "symptoms", "cause", "culprits", "true_culprits", "fixes", "text"}


def load_excerpts(zoo: Path) -> list[Console]:
    """Every excerpt by name; none where the zoo has no such folder. Raises FaultError for a file that cannot be used."""
    return [_load(file) for file in sorted((zoo / "consoles").glob("*.toml"))]


def _load(file: Path) -> Console:
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FaultError(f"{file}: not valid TOML: {error}") from None
    unknown = set(raw) - _KEYS
    missing = {"source", "symptoms", "fixes", "text"} - set(raw)
    if unknown or missing:
        raise FaultError(f"{file}: {', '.join(sorted(unknown | missing))}: unknown or missing")
    culprits = tuple(raw.get("culprits", ()))
    shows = {"what"} | ({"why"} if "cause" in raw else set()) | ({"who"} if culprits else set())
    truth = Truth(
        situation=file.stem,
        form="excerpt",
        split=SPLIT,
        healthy=False,
        symptom=raw["symptoms"][0],
        also=tuple(raw["symptoms"][1:]),
        cause=raw.get("cause"),
        culprits=culprits,
        true_culprits=tuple(raw.get("true_culprits", culprits)),
        fixes=tuple(raw["fixes"]),
        shows=tuple(sorted(shows)),
        world=0,
        torch="",
        nccl="",
        parallelism="",
    )
    return Console({"job.log": raw["text"].lstrip("\n")}, truth)
