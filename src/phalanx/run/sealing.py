"""Takes secrets out of what ranks wrote into the bundle themselves: logs of recordings, error files, dumps, stacks."""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Collection
from pathlib import Path

from phalanx import private
from phalanx.sources.secrets import HIDDEN, OutputRedactor, is_secret, redact

_TEXTS = (".json", ".jsonl", ".txt", ".log")
_CHECKPOINT, _STATES = "phalanx.checkpoint/1", ("random", "states")
_LARGEST = 512 << 20
_PIECE = 1 << 20


def seal(folder: Path, values: Collection[str] = ()) -> None:
    """Redact every text file below the folder, in place, and make all of it private. `values` are secrets of any form."""
    hidden = sorted(values, key=len, reverse=True)
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.suffix in _TEXTS and _is_plain(path):
                _seal_file(path, hidden)
    private.make_private(folder)


def sealed(name: str, data: bytes, values: Collection[str] = ()) -> bytes:
    """The content of a file, or lines of it, as `seal` would leave it."""
    if Path(name).suffix not in _TEXTS:
        return data
    hidden = sorted(values, key=len, reverse=True)
    pieces = [data] if name.endswith(".json") else data.splitlines(keepends=True)
    return b"".join(_sealed_json(piece, hidden) for piece in pieces)


def _is_plain(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and 0 < status.st_size <= _LARGEST


def _seal_file(path: Path, values: list[str]) -> None:
    if not _holds_secret(path, values):
        return
    beside = path.with_name(f".{path.name}.sealed")
    with path.open("rb") as old, open(beside, "wb", opener=private.opener) as new:
        if path.suffix == ".json":
            new.write(_sealed_json(old.read(), values))
        else:
            for line in old:
                new.write(_sealed_json(line, values))
    beside.replace(path)


def _holds_secret(path: Path, values: list[str]) -> bool:
    redactor = OutputRedactor()
    redactor.hide(values)
    with path.open("rb") as file:
        rest = b""
        while data := file.read(_PIECE):
            piece = rest + data
            cut = piece.rfind(b"\n") + 1 or len(piece)
            if redactor.clean(piece[:cut]) != piece[:cut]:
                return True
            rest = piece[cut:]
    return bool(rest) and redactor.clean(rest) != rest


def _sealed_json(data: bytes, values: list[str]) -> bytes:
    """The same document or line with its strings redacted; text that is no JSON is redacted as it stands."""
    end = data[len(data.rstrip(b"\r\n")) :]
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _sealed_text(data.decode("utf-8", "surrogateescape"), values).encode("utf-8", "surrogateescape")
    sealed = _sealed(document, values)
    if isinstance(document, dict) and isinstance(sealed, dict) and _is_recorders(document):
        # Random states are bytes in base64, in which any token may stand by chance; changed, they could not be restored.
        sealed |= {name: document[name] for name in _STATES if name in document}
    if sealed == document:
        return data
    return json.dumps(sealed, separators=(",", ":")).encode() + end


def _is_recorders(document: dict[str, object]) -> bool:
    """A checkpoint of the recorder, or a line of its log about an epoch."""
    return document.get("schema") == _CHECKPOINT or document.get("k") == "epoch"


def _sealed(value: object, values: list[str]) -> object:
    if isinstance(value, str):
        return _sealed_text(value, values)
    if isinstance(value, list):
        return [_sealed(one, values) for one in value]
    if isinstance(value, dict):
        return {
            _sealed_text(name, values): HIDDEN
            if isinstance(one, str) and is_secret(name, one)
            else _sealed(one, values)
            for name, one in value.items()
        }
    return value


def _sealed_text(text: str, values: list[str]) -> str:
    for value in values:
        text = text.replace(value, HIDDEN)
    return redact(text)
