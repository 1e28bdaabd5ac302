"""Writes a rank's record so that a kill at any moment leaves it readable: lines that are only appended, and tensor files.

`calls.jsonl` has one JSON object a line, in the order of what happened. Tensor files are safetensors: room for the header
is left at the start and filled when the file is closed; until then the lines of the log say where each tensor lies.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from typing import Any

from .fingerprints import UNSEEN, Look, append_line, write_all

LOG = "calls.jsonl"
META = "meta.json"
_HEADER_ROOM = 256 * 1024
_ENTRY_ROOM = 160  # bytes of header that one tensor takes at most
_FILE_SIZE = 512 * 1024 * 1024
_FREE_AT_LEAST = 512 * 1024 * 1024  # bytes of the disk that a recording leaves to the job

_LOOKED_AFTER = 64 * 1024 * 1024  # bytes


def private(path: str, flags: int) -> int:
    """For `open`: a file that is made new can be read by its owner alone."""
    return os.open(path, flags, 0o600)


def regular(path: str, flags: int) -> int:
    """For `open`: a recording may come from anybody, and a pipe or a device in a file's place would never end."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return descriptor


class DiskFullError(OSError):
    """The disk has no room left for a recording."""


def check_disk(folder: str, size: int = 0) -> None:
    """Raise DiskFullError where so many more bytes would take what is the job's."""
    room = os.statvfs(folder)
    if room.f_bavail * room.f_frsize < _FREE_AT_LEAST + size:
        raise DiskFullError(f"less than {_FREE_AT_LEAST // 2**20} MiB would be left on the disk")


class Journal:
    """One rank's record folder, being written."""

    def __init__(self, folder: str, first_file: int = 0) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.folder = folder
        self._lock = threading.Lock()
        self._log = os.open(os.path.join(folder, LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._tensors: TensorFile | None = None
        self._files = first_file
        self._until_check = 0  # bytes that may be written before the disk is looked at again
        self.bytes_of_tensors = 0
        self.bytes_of_log = 0
        self._meta: dict[str, Any] = {}

    @property
    def log(self) -> int:
        """The log's descriptor, for the compiled kernel."""
        return self._log

    def line(self, kind: str, /, **facts: Any) -> None:
        """Append what happened."""
        self.text(f'"k":"{kind}",{_encode(facts)[1:-1]}' if facts else f'"k":"{kind}"')

    def text(self, inside: str) -> None:
        """Append a line that is JSON already, but for the braces."""
        self.bytes_of_log += write_all(self._log, f"{{{inside}}}\n".encode())

    def prints(
        self,
        prefix: str,
        held: list[Any],
        wants_parts: bool = False,
        copy: int = 0,
        told: Any = None,
        look: Look = UNSEEN,
    ) -> None:
        """Append a line that ends with fingerprints; see `append_line`."""
        self.bytes_of_log += append_line(self._log, prefix, held, wants_parts, copy, told, look)

    @staticmethod
    def inside(facts: dict[str, Any]) -> str:
        """Facts as a line has them, with a comma behind."""
        return _encode(facts)[1:-1] + ","

    def meta(self, **facts: Any) -> None:
        """Facts about the recording; the file is replaced whole."""
        with self._lock:
            self._meta.update(facts)
            path = os.path.join(self.folder, META)
            with open(path + ".new", "w", encoding="utf-8", opener=private) as file:
                json.dump(self._meta, file, indent=1)
            os.replace(path + ".new", path)

    def tensor(self, name: str, data: Any) -> list[int]:
        """Keep bytes; returns [file, offset, size], to be put into the log."""
        with self._lock:
            self._until_check -= len(data)
            if self._until_check < 0:
                check_disk(self.folder, len(data) + _LOOKED_AFTER)
                self._until_check = _LOOKED_AFTER
            if self._tensors is None or self._tensors.is_full:
                self._next_file()
            assert self._tensors is not None
            offset = self._tensors.append(name, data)
            self.bytes_of_tensors += len(data)
            return [self._files - 1, offset, len(data)]

    def _next_file(self) -> None:
        if self._tensors is not None:
            self._tensors.close()
        self._tensors = TensorFile(os.path.join(self.folder, tensor_file(self._files)))
        self._files += 1

    def close(self) -> None:
        """Complete the tensor file's header."""
        with self._lock:
            if self._tensors is not None:
                self._tensors.close()
                self._tensors = None


_encode = json.JSONEncoder(separators=(",", ":")).encode


def tensor_file(number: int) -> str:
    """Name of a file of results."""
    return f"results-{number:04d}.safetensors"


class TensorFile:
    """A safetensors file that grows. Its tensors are plain bytes; the log knows their types and shapes."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._entries: dict[str, Any] = {}
        self._size = 0
        write_all(self._file, (_HEADER_ROOM).to_bytes(8, "little") + b"{}".ljust(_HEADER_ROOM))

    @property
    def is_full(self) -> bool:
        return self._size >= _FILE_SIZE or (len(self._entries) + 1) * _ENTRY_ROOM >= _HEADER_ROOM

    def append(self, name: str, data: Any) -> int:
        """Returns where in the file it lies."""
        begin = self._size
        write_all(self._file, data)
        self._size += len(data)
        self._entries[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [begin, self._size]}
        return 8 + _HEADER_ROOM + begin

    def close(self) -> None:
        header = json.dumps(self._entries, separators=(",", ":")).encode()
        if len(header) <= _HEADER_ROOM:
            os.pwrite(self._file, header.ljust(_HEADER_ROOM), 8)
        os.close(self._file)


def whole_lines(path: str) -> list[dict[str, Any]]:
    """The whole lines of a log; a kill may have cut the last one. Raises OSError."""
    found = []
    with open(path, "rb", opener=regular) as file:
        for text in file:
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                break
            if isinstance(line, dict):
                found.append(line)
    return found
