"""Opens the files of a checkpoint: regular files only, never waiting for a pipe, and never more than a bounded piece at once."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from phalanx.checkpoint_files.model import CheckpointError, Span

PIECE = 4 << 20
LARGEST_PICKLE = 512 << 20
LARGEST_TEXT = 64 << 20


def open_regular(path: Path) -> BinaryIO:
    """The file, opened. Raises CheckpointError for what is not there, cannot be read or is no regular file."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without writer would block
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise CheckpointError(f"{path}: not a regular file")
    return os.fdopen(number, "rb")


def size_of(path: Path) -> int:
    """Bytes of a regular file; -1 for anything else."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


def read_bytes(path: Path, offset: int = 0, length: int | None = None, most: int = LARGEST_PICKLE) -> bytes:
    """A stretch of a file, to its end if no length is given. Raises CheckpointError if it is larger than `most`."""
    with open_regular(path) as file:
        wanted = os.fstat(file.fileno()).st_size - offset if length is None else length
        if wanted > most:
            raise CheckpointError(f"{path}: {wanted:,} bytes to read at once; at most {most:,} are")
        file.seek(offset)
        return file.read(max(0, wanted))


def pieces(span: Span) -> Iterator[bytes]:
    """The bytes of a span, in pieces that hold whole numbers."""
    with open_regular(span.path) as file:
        file.seek(span.offset)
        left = span.length
        while left > 0:
            data = file.read(min(PIECE, left))
            if not data:
                return
            left -= len(data)
            yield data


class Window(io.RawIOBase):
    """A stretch of a file as a file of its own: archives lie within other files."""

    def __init__(self, file: BinaryIO, offset: int, length: int) -> None:
        super().__init__()
        self._file, self._offset, self._length, self._at = file, offset, length, 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """As files do."""
        base = (0, self._at, self._length)[whence]
        if base + offset < 0:
            raise OSError("a place before the beginning")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """As files do."""
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """As files do, up to the window's end."""
        self._file.seek(self._offset + self._at)
        count = self._file.readinto(memoryview(buffer)[: max(0, self._length - self._at)])  # type: ignore[attr-defined]
        self._at += count
        return int(count)
