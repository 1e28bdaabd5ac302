"""Agents whose standard streams we hold, as children of the driver: what `local` and `ssh` have in common."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from phalanx.backends.backend import BackendError, Plan, State, Streams

_SHOWN = 4000  # bytes of an agent's own words that are worth keeping
_PRINTABLE = re.compile(r"[^\x09\x0a\x20-\x7e\u00a0-\uffff]")


class ProcessJob:
    """One child for each node; its standard error goes to a file in the job's folder."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._nodes = plan.nodes
        self._files = [folder / f"engine-node{node}.log" for node in range(len(plan.commands))]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._asked = False
        self._lock = threading.Lock()
        try:
            for command, file in zip(plan.commands, self._files, strict=True):
                with file.open("wb") as errors:
                    self._processes.append(
                        subprocess.Popen(
                            command.argv,
                            stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE,
                            stderr=errors,
                            env={**os.environ, **command.environment},
                            start_new_session=True,  # a Ctrl-C is for the driver, which then cancels in good order
                        )
                    )
        except OSError as error:
            self.cancel()
            self.cancel()
            raise BackendError(f"cannot start {plan.commands[0].argv[0]}: {error.strerror}") from error

    @property
    def pids(self) -> tuple[int, ...]:
        """The children, by node."""
        return tuple(process.pid for process in self._processes)

    def streams(self) -> Mapping[int, Streams]:
        """Both pipes of each child."""
        found = {}
        for node, process in enumerate(self._processes):
            assert process.stdin is not None
            assert process.stdout is not None
            found[node] = Streams(process.stdin, process.stdout)  # type: ignore[arg-type]
        return found

    def follow(self) -> tuple[State, str]:
        """Running as long as one child lives; failed as soon as one has ended badly."""
        codes = [process.poll() for process in self._processes]
        bad = [(node, code) for node, code in enumerate(codes) if code not in (None, 0)]
        if bad:
            return State.CANCELLED if self._asked else State.FAILED, self._words(bad[0][0], int(bad[0][1] or 0))
        return (State.RUNNING if None in codes else State.DONE), ""

    def cancel(self) -> None:
        """First a request, which an agent passes on to its ranks; then force."""
        with self._lock:
            number = signal.SIGKILL if self._asked else signal.SIGTERM
            self._asked = True
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)

    def collect(self) -> Mapping[str, str]:
        """What the children have said on standard error."""
        for process in self._processes:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        words = {f"node{node}": self._said(node) for node in range(len(self._processes))}
        return {node: text for node, text in words.items() if text}

    def _said(self, node: int) -> str:
        try:
            with self._files[node].open("rb") as file:
                file.seek(max(0, self._files[node].stat().st_size - _SHOWN))
                return _PRINTABLE.sub("?", file.read().decode("utf-8", "replace").replace("\r", "")).strip()
        except OSError:
            return ""

    def _words(self, node: int, code: int) -> str:
        name = self._nodes[node] if node < len(self._nodes) else f"node {node}"
        how = f"exit status {code}" if code >= 0 else f"signal {-code}"
        last = self._said(node).splitlines()[-1:]
        return f"{name}: {how}" + (f": {last[0]}" if last else "")
