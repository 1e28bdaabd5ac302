"""torchrun: `--logs-specs phalanx` keeps every rank's output in files of its own, private, and still shows it; the watch reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    DefaultLogsSpecs: Any = object
    Std: Any = None
else:
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std


class PhalanxLogs(DefaultLogsSpecs):  # type: ignore[misc]
    """PyTorch's own log files, for all streams of all ranks, below PHALANX_DIR unless `--log-dir` says otherwise."""

    def __init__(
        self, log_dir: str | None = None, redirects: Any = None, tee: Any = None, local_ranks_filter: Any = None
    ) -> None:
        if not log_dir or log_dir == os.devnull:
            log_dir = os.path.join(os.environ.get("PHALANX_DIR") or "phalanx-runs", "torchrun")  # noqa: PTH118
        with _private():
            super().__init__(log_dir=log_dir, redirects=Std.NONE, tee=Std.ALL, local_ranks_filter=local_ranks_filter)

    def reify(self, envs: Any) -> Any:
        """The files of an attempt; PyTorch opens them later, when the umask is the user's again."""
        with _private():
            files = super().reify(envs)
            for path in (*files.stdouts.values(), *files.stderrs.values()):
                if path:
                    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        return files


@contextmanager
def _private() -> Iterator[None]:
    mask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(mask)
