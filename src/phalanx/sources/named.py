"""Opens what a user names, be it a file, a pipe such as `<(kubectl logs …)` or a device, without waiting for ever.

Opening a named pipe waits until somebody opens its other end: if nobody does, the command would hang without a word.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from pathlib import Path
from typing import BinaryIO

PATIENCE_S = 20.0  # for a first byte, or the end, of a pipe
_ALONE_S = 2.0  # for somebody who opens its other end
_MOST_TEXT = 64 << 20


def open_named(path: Path, patience: float = PATIENCE_S) -> BinaryIO:
    """Open to read. Raises OSError, also for a pipe into which nobody writes."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if stat.S_ISFIFO(os.fstat(handle).st_mode) and not _is_written_to(handle, patience):
            raise OSError(errno.ETIMEDOUT, "a pipe into which nobody writes", str(path))
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_named_text(path: Path) -> str:
    """A text of bounded size. Raises OSError."""
    with open_named(path) as file:
        data = file.read(_MOST_TEXT + 1)
    if len(data) > _MOST_TEXT:
        raise OSError(errno.EFBIG, f"larger than {_MOST_TEXT >> 20} MiB", str(path))
    return data.decode("utf-8", "replace")


def _is_written_to(handle: int, patience: float) -> bool:
    """Whether a writer has written, or come and gone. Before the first one comes, a poll says nothing at all."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    alone = min(_ALONE_S, patience)
    if poll.poll(alone * 1000):
        return True
    try:
        os.read(handle, 1)  # nothing is there: an end if nobody has the pipe open, an error if somebody has
    except BlockingIOError:
        return bool(poll.poll((patience - alone) * 1000))
    return False
