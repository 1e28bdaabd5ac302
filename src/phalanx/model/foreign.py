"""Reads files that may come from anybody: regular ones only, of bounded size, and JSON of any depth without a crash."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

LARGEST = 64 << 20


def open_regular(path: Path | str) -> BinaryIO:
    """A file for reading; a pipe or a device in its place is refused and never waited for. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path | str, most: int = LARGEST) -> bytes:
    """The whole file. Raises OSError, also for one that is larger."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", str(path))
    return data


def read_text(path: Path | str, most: int = LARGEST) -> str:
    """The whole file as text. Raises OSError."""
    return read_bytes(path, most).decode("utf-8", "replace")


def load_json(data: bytes | str) -> Any:
    """The document. Raises ValueError, also for one that is nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def read_json(path: Path | str, most: int = LARGEST) -> Any:
    """The document in a file. Raises OSError or ValueError."""
    return load_json(read_bytes(path, most))


def read_object(path: Path | str, most: int = LARGEST) -> dict[str, Any]:
    """The object in a file. Raises OSError or ValueError, also for JSON that is no object."""
    loaded = read_json(path, most)
    if not isinstance(loaded, dict):
        raise ValueError("not a JSON object")
    return loaded
