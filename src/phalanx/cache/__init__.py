"""Keeps what is slow to make and can be made again: parsed rules, compiled needles. In the user's cache folder.

`$XDG_CACHE_HOME/phalanx`, or `~/.cache/phalanx`. Whatever is there is checked before it is used: a file that is damaged,
cut off, of another user or of another release counts as missing, and so does a folder that cannot be written. Nothing
in it is ever executed or unpickled, but for the folder `compiled`, which has its own rules (`replay/inside/phalanx_record/compiled.py`). `PHALANX_NO_CACHE=1` does without.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from phalanx import private

_HEAD = b"phalanx-cache-1\n"
_LARGEST = 64 << 20
_MOST_OF_A_KIND = 12


def key_of(parts: Iterable[bytes | str]) -> str:
    """A name for what is made from these parts; other parts, or the same ones cut differently, give another name."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


def load(kind: str, key: str) -> bytes | None:
    """What was saved under this key; None if there is nothing, or nothing that can be trusted."""
    folder = _folder()
    if folder is None:
        return None
    try:
        with (folder / f"{kind}-{key}").open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size > _LARGEST or status.st_uid != os.geteuid():
                return None
            raw = file.read(_LARGEST)
    except OSError:
        return None
    head, digest, payload = raw[: len(_HEAD)], raw[len(_HEAD) : len(_HEAD) + 32], raw[len(_HEAD) + 32 :]
    if head != _HEAD or digest != hashlib.sha256(payload).digest():
        return None
    return payload


def save(kind: str, key: str, payload: bytes) -> None:
    """Keep it under this key, whole or not at all. That it cannot be kept is no error."""
    folder = _folder()
    if folder is None or len(payload) > _LARGEST // 2:
        return
    import tempfile  # seldom needed, and it loads a lot

    with suppress(OSError):
        folder.parent.mkdir(mode=private.FOLDER, parents=True, exist_ok=True)
        private.make_folder(folder)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_HEAD + hashlib.sha256(payload).digest() + payload)
            Path(name).replace(folder / f"{kind}-{key}")
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
        _forget_old(folder, kind)


def _folder() -> Path | None:
    if os.environ.get("PHALANX_NO_CACHE"):
        return None
    given = os.environ.get("XDG_CACHE_HOME", "")
    if given and Path(given).is_absolute():  # a relative one is to be ignored, says its specification
        return Path(given, "phalanx")
    home = Path("~").expanduser()
    return home / ".cache" / "phalanx" if home.is_absolute() else None


def _forget_old(folder: Path, kind: str) -> None:
    """Every change of a rule leaves a file that nobody will ask for again."""
    made = [(entry.stat().st_mtime, entry.path) for entry in os.scandir(folder) if entry.name.startswith(f"{kind}-")]
    for _, path in sorted(made)[:-_MOST_OF_A_KIND]:
        Path(path).unlink(missing_ok=True)
