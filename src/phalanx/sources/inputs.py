"""Finds what the user handed over and opens it: files, folders, standard input, compressed or not.

What cannot be read is not an error: it is listed as not checked, with what it needs.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

import zstandard

from phalanx.model import Unchecked
from phalanx.sources.bundle import evidence_of, is_bundle, was_cut_off
from phalanx.sources.named import open_named
from phalanx.sources.patience import OutOfTimeError, left_out
from phalanx.sources.text import shown_name

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_SKIPPED_FOLDERS = frozenset({".git", "__pycache__", ".venv", "node_modules", ".mypy_cache", "site-packages"})
_CODE = frozenset({".py", ".pyc", ".so", ".ipynb", ".cu", ".cpp", ".cc", ".h", ".hpp", ".c"})
_MODEL_FILES = frozenset(
    {".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".keras", ".npz", ".npy", ".parquet", ".arrow"}
)
_MOST_FILES = 20_000
_MOST_LAYERS = 4  # of compression
# A file that unpacks into so many bytes, and so many times its size, is made to keep us: it is read for so many seconds.
_MOST_UNPACKED, _MOST_TIMES, _PATIENCE = 8 << 20, 60, 30.0


@dataclass(frozen=True, slots=True)
class Input:
    """One thing to read: a name to show, the path parts that may tell its rank, and how to open it."""

    name: str
    open: Callable[[], BinaryIO]
    path: Path | None = None  # of a regular file: it may be opened by another process, and more than once
    is_pipe: bool = False  # what was read of it once is gone


def from_text(name: str, text: str | bytes) -> Input:
    """An input held in memory, as the rules' own test cases are."""
    data = text if isinstance(text, bytes) else text.encode()
    return Input(name, lambda: io.BytesIO(data))


def find_inputs(paths: list[str]) -> tuple[list[Input], list[Unchecked]]:
    """Everything readable below the given paths, in a stable order. Raises FileNotFoundError for a wrong path."""
    found: list[Input] = []
    unchecked: list[Unchecked] = []
    for given in paths:
        if given == "-":
            found.append(Input("<stdin>", lambda: sys.stdin.buffer, is_pipe=True))
            continue
        path = Path(given)
        if not path.exists():
            raise FileNotFoundError(
                f"{given}: no such file or folder; give a log file, a folder of logs, or - for standard input"
            )
        if path.is_dir() and is_bundle(path):
            if was_cut_off(path):
                what = f"the end of the job: the bundle {shown_name(path.name)} was cut off, its launcher was killed"
                unchecked.append(Unchecked(what, "what ended it: the machine's own log, or the scheduler's"))
            named = ((one, str(one.relative_to(path))) for one in evidence_of(path))
            found.extend(kept for one, name in named if (kept := _regular(one, name, unchecked)) is not None)
        elif path.is_dir():
            found.extend(_walk(path, unchecked))
        elif path.suffix == ".py":
            unchecked.append(
                Unchecked(f"{shown_name(given)}: a script, not a log", f"`phalanx check {shown_name(given)}`")
            )
        elif (one := _regular(path, path.name, unchecked, named=True)) is not None:
            found.append(one)
    return found, unchecked


def _walk(top: Path, unchecked: list[Unchecked]) -> Iterator[Input]:
    """Regular files below a folder; links to folders are not followed, so a loop of links cannot trap us."""
    count = 0

    def refuse(error: OSError) -> None:
        unchecked.append(
            Unchecked(f"folder {shown_name(str(error.filename))}: {error.strerror}", "permission to read it")
        )

    for folder, folders, files in os.walk(top, onerror=refuse):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        for name in sorted(files):
            path = Path(folder, name)
            suffix = path.suffix.lower()
            if suffix in _CODE or suffix in _MODEL_FILES:
                continue
            count += 1
            if count > _MOST_FILES:
                unchecked.append(
                    Unchecked(f"more than {_MOST_FILES} files below {shown_name(str(top))}", "a narrower folder")
                )
                return
            if (one := _regular(path, str(path.relative_to(top)), unchecked)) is not None:
                yield one


def _regular(path: Path, name: str, unchecked: list[Unchecked], named: bool = False) -> Input | None:
    name = shown_name(name)
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            if named:
                return Input(name, lambda: open_named(path), is_pipe=True)
            unchecked.append(Unchecked(f"{name}: not a regular file", "a plain copy of it"))
            return None
        os.close(os.open(path, os.O_RDONLY))  # whether it can be read; a stream would take longer
    except OSError as error:
        unchecked.append(Unchecked(f"{name}: {error.strerror}", "a readable copy of it"))
        return None
    return Input(name, lambda: path.open("rb"), path)


class _Utf8From(io.RawIOBase):
    """Presents a UTF-16 or UTF-32 stream as UTF-8."""

    def __init__(self, raw: BinaryIO, encoding: str) -> None:
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while not self._ready:
            data = self._raw.read(1 << 16)
            self._ready = self._decoder.decode(data, final=not data).encode("utf-8", "replace")
            if not data and not self._ready:
                return 0
        taken = self._ready[: len(view)]
        view[: len(taken)] = taken
        self._ready = self._ready[len(taken) :]
        return len(taken)


# What the decompressors raise on a damaged file, and the system on one that cannot be read.
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
_BOMS = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
_MAGIC: tuple[tuple[bytes, Callable[[IO[bytes]], object]], ...] = (
    (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw, mode="rb")),
    (b"\x28\xb5\x2f\xfd", lambda raw: zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)


class TooMuchError(OSError):
    """A file that unpacks into more than a log ever holds."""


class _Counted(io.RawIOBase):
    """A stream, and how much of it was read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = cast(io.BufferedReader, self._stream).readinto1(buffer)
        self.count += count
        return count


class _Unpacked(io.RawIOBase):
    """What a decompressor makes, until it has made far more than a log holds and has been at it for too long."""

    def __init__(self, packed: IO[bytes], opener: Callable[[IO[bytes]], object]) -> None:
        self._packed = _Counted(packed)
        self._stream = cast(io.RawIOBase, opener(io.BufferedReader(self._packed, 1 << 14)))
        self._made = 0
        self._began = time.monotonic()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._stream.readinto(buffer) or 0
        self._made += count
        is_bomb = self._made > max(_MOST_UNPACKED, _MOST_TIMES * self._packed.count)
        if is_bomb and time.monotonic() - self._began > _PATIENCE:
            times = self._made // max(self._packed.count, 1)
            raise TooMuchError(
                f"unpacks into {times} times its size: read for {_PATIENCE:g} s, up to {self._made >> 20} MiB"
            )
        return count


def plain_stream(raw: BinaryIO, layers: int = _MOST_LAYERS) -> BinaryIO:
    """The stream decompressed and in UTF-8, told by its first bytes and not by its name. Raises TooMuchError for endless nesting."""
    stream = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw), 1 << 16)
    head = stream.peek(64)[:64]
    for magic, opener in _MAGIC:
        if head.startswith(magic):
            if not layers:
                raise TooMuchError(f"compressed more than {_MOST_LAYERS} times over")
            return plain_stream(io.BufferedReader(_Unpacked(stream, opener), 1 << 16), layers - 1)
    for bom, encoding in _BOMS:
        if head.startswith(bom) and b"\x00" in head:  # without zeros it is a log that begins with odd bytes
            return io.BufferedReader(_Utf8From(stream, encoding))
    if len(head) >= 4 and not any(head[1:8:2]) and 0 not in head[0:8:2]:
        return io.BufferedReader(_Utf8From(stream, "utf-16-le"))  # Windows' `>` without a mark
    return stream


def unread(name: str, error: Exception) -> Unchecked:
    """What is told of a file that could not be read to its end."""
    if isinstance(error, OutOfTimeError):
        return left_out(f"{name}: {error}")
    needs = (
        "the part of the log around the failure" if isinstance(error, TooMuchError) else "an undamaged copy of the file"
    )
    return Unchecked(f"{name}: {error}", needs)


_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))


def looks_binary(head: bytes) -> bool:
    """Zeros and other control bytes do not occur in logs, but for a stretch of zeros that a crash left behind."""
    rest = head.replace(b"\x00", b"")
    controls = len(rest) - len(rest.translate(None, _CONTROLS))
    return len(rest) < len(head) and (controls > len(rest) // 50 or not rest)
