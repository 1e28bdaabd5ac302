"""Starts ranks so that none can outlive the job: sessions of their own, death with the parent, and a warden."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import psutil

MARK = "PHALANX_JOB"
_SET_DEATH_SIGNAL, _SET_SUBREAPER, _SET_TRACER = 1, 36, 0x59616D61  # Linux: prctl(2)


def _prctl(option: int, value: int) -> None:
    """Ask the kernel; where it is not Linux, the warden has to do."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _dies_with_parent() -> Callable[[], None]:
    """For the moment between fork and exec. All that it needs is made before the fork."""
    parent = os.getpid()
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return lambda: None

    def ask() -> None:
        prctl(_SET_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
        prctl(_SET_TRACER, ctypes.c_ulong(-1), 0, 0, 0)  # py-spy is a sibling: Yama would refuse it
        if os.getppid() != parent:  # the parent died before we asked
            os._exit(1)

    return ask


class Children:
    """The processes of one job, over all its attempts. Only the thread that made it may start ranks: the kernel counts
    its death as the parent's."""

    def __init__(self) -> None:
        self.mark = f"{MARK}={secrets.token_hex(8)}"
        _prctl(_SET_SUBREAPER, 1)
        warden = Path(__file__).with_name("warden.py")
        self._warden = subprocess.Popen(
            [sys.executable, "-I", "-S", str(warden), self.mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._helpers = {self._warden.pid}

    def start_rank(
        self,
        argv: Sequence[str],
        variables: Mapping[str, str],
        streams: tuple[int, int],
        stdin: int | None,
        keep: Iterable[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start one rank; its output goes to the given descriptors, and it has those in `keep` too. Raises OSError."""
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=streams[0],
            stderr=streams[1],
            env={**variables, MARK: self.mark.partition("=")[2]},
            start_new_session=True,
            pass_fds=tuple(keep),
            preexec_fn=_dies_with_parent(),
        )
        self._tell(str(process.pid))
        return process

    def start_helper(self, argv: Sequence[str], keep: Iterable[int] = ()) -> subprocess.Popen[bytes]:
        """Start something that serves the job and is not one of its ranks."""
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=tuple(keep),
            preexec_fn=_dies_with_parent(),
            env={**os.environ, MARK: self.mark.partition("=")[2]},
        )
        self._helpers.add(process.pid)
        return process

    def adopt(self, process: int) -> None:
        """A process of ours that is not to be taken for something that a rank left behind."""
        self._helpers.add(process)

    def signal_all(self, ranks: Iterable[int], number: int) -> None:
        """Send a signal to ranks and everything in their groups."""
        for rank in ranks:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(rank, number)

    def sweep(self, patience: float = 5.0) -> int:
        """Kill whatever ranks have left behind: as their adoptive parent we have it below us. Returns how many."""
        swept = 0
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            left = [child for child in psutil.Process().children(recursive=True) if not self._is_helper(child)]
            alive = []
            for child in left:
                with contextlib.suppress(psutil.Error):
                    if child.status() != psutil.STATUS_ZOMBIE:
                        alive.append(child)
                        child.kill()
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(child.pid, os.WNOHANG)
            if not alive:
                break
            swept += len(alive)
            time.sleep(0.02)
        self._tell("forget")
        return swept

    def _is_helper(self, child: psutil.Process) -> bool:
        try:
            return child.pid in self._helpers or any(parent.pid in self._helpers for parent in child.parents())
        except psutil.Error:
            return False

    def close(self) -> None:
        """The job is over and its ranks are gone."""
        self._tell("done")
        with contextlib.suppress(OSError):
            if self._warden.stdin is not None:
                self._warden.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._warden.wait(5)

    def _tell(self, word: str) -> None:
        if self._warden.stdin is not None:
            with contextlib.suppress(OSError):  # the warden itself was ended: then there is none
                self._warden.stdin.write(f"{word}\n".encode())
                self._warden.stdin.flush()


def end_helper(process: subprocess.Popen[bytes]) -> None:
    """A helper has served."""
    process.kill()
    process.wait()
