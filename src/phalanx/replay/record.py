"""The outside of a recording: what every rank is told, and the sources that are kept beside it."""

from __future__ import annotations

import hashlib
import random
from enum import StrEnum
from pathlib import Path
from typing import Any

from phalanx import private
from phalanx.model import bundle as layout
from phalanx.model.foreign import read_object
from phalanx.sources.secrets import redact_source

INSIDE = Path(__file__).parent / "inside"
_TORCH = frozenset({"torch", "horovod"})
_TENSORFLOW = frozenset({"tensorflow", "keras"})
REFUSED = ("horovod.tensorflow", "horovod.keras", "horovod.mxnet")  # Horovod is recorded for PyTorch
SOURCES = "sources"  # in the bundle: the user's own files as they were, secrets redacted
_MOST_SOURCE = 4 * 1024 * 1024


class Mode(StrEnum):
    """How much is kept."""

    LIGHT = "light"
    RING = "ring"
    FULL = "full"


def frameworks_for(mode: Mode) -> frozenset[str]:
    """What can be recorded in a mode: a ring needs the state of the training, which is found for PyTorch only."""
    return _TORCH if mode is Mode.RING else _TORCH | _TENSORFLOW


def settings_for(mode: Mode, folder: Path, keep_steps: int, every_steps: int, every_seconds: float) -> dict[str, Any]:
    """What every rank's recorder is told. The seed stands for what the script leaves unseeded."""
    return {
        "mode": mode.value,
        "seed": random.SystemRandom().randrange(1, 2**32),
        "script": str(folder.resolve()),
        "keep_steps": keep_steps,
        "every_steps": every_steps,
        "every_seconds": every_seconds,
    }


def keep_sources(bundle: Path, folder: Path) -> None:
    """Copy the user's own files that the ranks loaded, so that a changed line can be shown later."""
    wanted: dict[str, str] = {}
    for meta in bundle.glob(f"attempt*/rank*/{layout.RECORD}/meta.json"):
        try:
            wanted |= dict(read_object(meta).get("sources", {}))
        except (OSError, ValueError, TypeError):
            continue
    left = _MOST_SOURCE
    for name, digest in sorted(wanted.items()):
        path = folder / name
        try:
            data = path.read_bytes()
        except OSError:
            continue
        if hashlib.sha256(data).hexdigest() != digest or len(data) > left:
            continue  # changed since, or too much
        left -= len(data)
        target = bundle / SOURCES / name
        private.make_folder(target.parent)
        private.write_text(target, redact_source(data.decode("utf-8", "replace")))


def framework_of(bundle: Path) -> str:
    """Whose collectives were recorded."""
    for meta in bundle.glob(f"attempt*/rank*/{layout.RECORD}/meta.json"):
        try:
            return str(read_object(meta)["framework"])
        except (OSError, ValueError, KeyError):
            continue
    return "torch"


def lacks_steps(bundle: Path) -> bool:
    """Whether PyTorch was recorded and no rank that ended counted a step: then there are no checkpoints, and a ring has no begin."""
    found = []
    for meta in bundle.glob(f"attempt*/rank*/{layout.RECORD}/meta.json"):
        try:
            told = read_object(meta)
        except (OSError, ValueError, TypeError):
            continue
        if "steps" in told and told.get("framework") != "tensorflow":
            found.append(int(told["steps"]))
    return bool(found) and not any(found)


def size_of(bundle: Path) -> tuple[int, int]:
    """Bytes of all recordings in a bundle, and of these the tensors'."""
    whole = tensors = 0
    for path in bundle.glob(f"attempt*/rank*/{layout.RECORD}/**/*"):
        if path.is_file():
            size = path.stat().st_size
            whole += size
            tensors += size if path.suffix == ".safetensors" else 0
    return whole, tensors
