"""A context in which a fault of ours ends the recording, and not the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Guard:
    """Hands an exception to whoever ends the recording, and goes on. What asks the process to end passes."""

    def __init__(self, stop: Callable[[BaseException], None]) -> None:
        self._stop = stop

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, Exception):
            self._stop(error)
            return True
        return False
