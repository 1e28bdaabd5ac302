"""Programs of an engine as children of the driver: agents whose standard streams we hold, or what starts them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from phalanx.backends.backend import BackendError, Plan, State, Streams
from phalanx.backends.words import last_words


class ProcessJob:
    """One child for each command of the plan; what it says beside its streams goes to a file in the job's folder."""

    def __init__(self, plan: Plan, folder: Path, names: tuple[str, ...] = (), has_streams: bool = True) -> None:
        self._names = names or plan.nodes
        self._has_streams = has_streams
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
                            stdin=subprocess.PIPE if has_streams else subprocess.DEVNULL,
                            stdout=subprocess.PIPE if has_streams else errors,
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
        """Both pipes of each child, unless its agents connect by themselves."""
        found = {}
        for node, process in enumerate(self._processes if self._has_streams else ()):
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
            if process.stdin is not None:  # its output is closed by whoever reads it, at its end
                with contextlib.suppress(OSError):
                    process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        words = {f"node{node}": self._said(node) for node in range(len(self._processes))}
        return {node: text for node, text in words.items() if text}

    def _said(self, node: int) -> str:
        return last_words(self._files[node])

    def _words(self, node: int, code: int) -> str:
        name = self._names[node] if node < len(self._names) else f"node {node}"
        how = f"exit status {code}" if code >= 0 else f"signal {-code}"
        said = [line.strip() for line in self._said(node).splitlines() if any(sign.isalpha() for sign in line)]
        return f"{name}: {how}" + (f": {' '.join(said[-2:])}" if said else "")
