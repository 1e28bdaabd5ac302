"""One engine for all processes of a test run: a keeper of its own starts it, and ends it when the last of them is gone.

    python -m tests.calls.sharing ENGINE FOLDER     started by the first that needs it

Whoever uses the engine holds a lock on a file of the folder, also when it is killed; the keeper waits for all of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
START_WITHIN = 240.0


@contextmanager
def shared(engine: str, factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The engine's folder, and the word that it was started with: an address, or nothing."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"shared-{engine}"
    folder.mkdir(exist_ok=True)
    keeper = None
    with (folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with (folder / "starting").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not (folder / "word").exists():
                keeper = _start(engine, folder)
        yield folder, (folder / "word").read_text()
    if keeper is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):  # others may need it for a while
            keeper.wait(20)


def _start(engine: str, folder: Path) -> subprocess.Popen[bytes]:
    log = folder / "keeper.log"
    with log.open("wb") as said:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.calls.sharing", engine, str(folder)],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + START_WITHIN
    while not (folder / "word").exists():
        if keeper.poll() is not None or time.monotonic() > deadline:
            keeper.kill()
            raise RuntimeError(f"{engine} did not start: {log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.1)
    return keeper


def main() -> None:
    """Start it, say so, and wait until nobody needs it any more."""
    from . import clusters

    engine, folder = sys.argv[1], Path(sys.argv[2])
    with clusters.KEPT[engine](folder) as word:
        (folder / "new").write_text(word)
        (folder / "new").rename(folder / "word")
        with (folder / "users").open("r") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
            (folder / "word").unlink()


if __name__ == "__main__":
    main()
