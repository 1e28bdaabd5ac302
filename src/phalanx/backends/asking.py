"""Engines that are spoken to by their own programs (sbatch, scontrol, kubectl): asked not too often, answers in plain words."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from phalanx.backends.backend import BackendError, State, Streams
from phalanx.backends.words import printable

_ANSWERS_WITHIN = 60.0  # seconds
_ENDED = (State.DONE, State.FAILED, State.CANCELLED)


def ask(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """What a program of the engine's prints. Raises BackendError with its own words."""
    program = Path(command[0]).name
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ANSWERS_WITHIN, check=False, stdin=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
    except FileNotFoundError:
        raise BackendError(f"there is no {command[0]} here: it must be installed and on PATH") from None
    except OSError as error:
        raise BackendError(f"cannot start {command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise BackendError(f"{program} did not answer within {_ANSWERS_WITHIN:g} s") from None
    if done.returncode:
        words = " ".join(line.strip() for line in done.stderr.strip().splitlines()[-3:])
        raise BackendError(f"{program}: {printable(words) or f'exit status {done.returncode}'}")
    return done.stdout


class OrphanCleanup:
    """A command that is run if this process is gone before it is revoked: by a small process that outlives us."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        script = Path(__file__).with_name("orphan_cleanup.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # a Ctrl-C is for the driver
        )

    def revoke(self) -> None:
        """The job is over, or we live to end it ourselves."""
        with contextlib.suppress(OSError, ValueError):
            self._process.communicate(b"revoked\n", timeout=5)


class AskedJob(ABC):
    """A job that an engine has in its hands; its agents connect to the driver by themselves."""

    def __init__(self, every: float, cleanup: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._every = every
        self._cleanup = OrphanCleanup(cleanup, environment)
        self._last = (State.QUEUED, "")
        self._asked_at = float("-inf")
        self._cancels = 0

    def streams(self) -> Mapping[int, Streams]:
        """None: agents connect by themselves."""
        return {}

    def follow(self) -> tuple[State, str]:
        """As the engine sees it; the last known state while it does not answer."""
        if self.has_ended or time.monotonic() - self._asked_at < self._every:
            return self._last
        self._asked_at = time.monotonic()
        try:
            self._last = self._look()
        except BackendError as error:
            return self._last[0], str(error)
        return self._last

    @property
    def has_ended(self) -> bool:
        """Whether the engine has said that it is over."""
        return self._last[0] in _ENDED

    def cancel(self) -> None:
        """First with a warning to the agents, then by force."""
        self._cancels += 1
        self._asked_at = float("-inf")
        if self._cancels <= 2:
            self._end(by_force=self._cancels == 2)

    def collect(self) -> Mapping[str, str]:
        """What the engine and the agents said. Nothing of the job is left."""
        said = self._part()
        self._cleanup.revoke()
        return {name: text for name, text in said.items() if text}

    @abstractmethod
    def _look(self) -> tuple[State, str]:
        """Ask. Raises BackendError where there is no answer."""

    @abstractmethod
    def _end(self, by_force: bool) -> None:
        """Have it ended."""

    @abstractmethod
    def _part(self) -> dict[str, str]:
        """See to it that nothing is left, and return what was said, by a name."""
