"""The rank's evidence on disk: one JSON object a line, each with its kind under `k`."""

from __future__ import annotations

import json
import os
from typing import Any

FILE = "verify.jsonl"
_MOST = 64 << 20  # bytes; what comes then is left out, and that is said


class Journal:
    """Appends records. They are handed to the system twice a second, so that a kill loses little."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor = os.open(os.path.join(folder, FILE), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")
        self._pid = os.getpid()
        self._written = 0

    def write(self, kind: str, /, **fields: Any) -> None:
        """Add a record. A forked worker of a loader has no say here."""
        if os.getpid() != self._pid or self._written > _MOST:
            return
        text = json.dumps({"k": kind, **fields}, separators=(",", ":"), default=str) + "\n"
        self._written += len(text)
        if self._written > _MOST:
            text = '{"k":"full"}\n'
        self._file.write(text)

    def flush(self) -> None:
        """Hand all to the system."""
        if os.getpid() == self._pid:
            self._file.flush()
