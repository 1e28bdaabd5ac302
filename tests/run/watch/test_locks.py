"""Which lock a rank waits for and who holds it, from real threads of a real process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.run.watch.locks import lock_wait_of
from phalanx.run.watch.stacks import ProcessStacks, take_stacks

HEAD = """\
import sys, threading, time
held = threading.Event()


def work():
    held.set()
    time.sleep(600)


"""
BY_ARGUMENT = """\
def hold(guarded):
    with guarded:
        work()


def take(lock):
    with lock:
        pass


lock = threading.Lock()
threading.Thread(target=hold, args=(lock,), name="writer", daemon=True).start()
held.wait()
print("ready", flush=True)
take(lock)
"""
BY_ATTRIBUTE = """\
class Cache:
    def __init__(self):
        self._lock = threading.RLock()

    def flush(self):
        with self._lock:
            work()

    def get(self):
        self._lock.acquire()


cache, other = Cache(), Cache()
for one, name in ((other, "of another cache"), (cache, "flusher")):
    held.clear()
    threading.Thread(target=one.flush, name=name, daemon=True).start()
    held.wait()
print("ready", flush=True)
cache.get()
"""
SLEEPING = """\
lock = threading.Lock()
print("ready", flush=True)
with lock:
    time.sleep(600)
"""


def stacks_of(folder: Path, script: str) -> ProcessStacks:
    (folder / "script.py").write_text(HEAD + script)
    with subprocess.Popen([sys.executable, str(folder / "script.py")], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            for _ in range(20):  # the line after `ready` is microseconds away
                taken = take_stacks([process.pid], values=True)[process.pid]
                if taken.main is not None and taken.main.frames[-1].function in (
                    "take",
                    "Cache.get",
                    "get",
                    "<module>",
                ):
                    return taken
            return taken
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("script", "name", "holder"), [(BY_ARGUMENT, "lock", "writer"), (BY_ATTRIBUTE, "self._lock", "flusher")]
)
def test_the_thread_that_holds_it_is_named(tmp_path: Path, script: str, name: str, holder: str) -> None:
    found = lock_wait_of(stacks_of(tmp_path, script))
    assert found is not None
    assert (found.name, found.holder) == (name, holder)
    assert found.frame is not None
    assert found.frame.function == "work"
    assert found.describe() == f"for the lock `{name}`, which thread {holder} holds in work() at script.py:7"


def test_who_holds_a_lock_does_not_wait_for_it(tmp_path: Path) -> None:
    assert lock_wait_of(stacks_of(tmp_path, SLEEPING)) is None
