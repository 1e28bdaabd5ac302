"""Takes the Python stacks of living processes by py-spy, from outside and without their help, and writes them as text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.model import Frame
from phalanx.run.watch.asking import ask_inside
from phalanx.run.watch.processes import command_of, is_alive, sample_process

_AT_ONCE = 4
OUR_THREADS = "phalanx-"  # what their names begin with, inside the rank
ENDED = "it has ended"
GRANT = (
    "py-spy may not look into the ranks. In a container start it with `--cap-add=SYS_PTRACE`; on Kubernetes add SYS_PTRACE "
    "to securityContext.capabilities; on a host run `sysctl kernel.yama.ptrace_scope=0`"
)


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread's stack, outermost frame first."""

    name: str
    active: bool
    frames: tuple[Frame, ...]
    holds_gil: bool = False
    values: tuple[Mapping[str, str], ...] = ()  # each frame's variables as text, where they were asked for


@dataclass(frozen=True, slots=True)
class ProcessStacks:
    """All stacks of a process; `error` says why there are none."""

    pid: int
    threads: tuple[Thread, ...] = ()
    error: str = ""
    command: str = field(default="", compare=False)

    @property
    def main(self) -> Thread | None:
        """The thread that runs the script."""
        return next((thread for thread in self.threads if thread.name == "MainThread"), None)


def find_py_spy() -> str | None:
    """The program, from the environment that Phalanx runs in, else from the path."""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if (folder / "py-spy").is_file():
            return str(folder / "py-spy")
    return shutil.which("py-spy")


def take_stacks(
    pids: Sequence[int], timeout: float = 5.0, *, pause: bool = True, values: bool = False
) -> dict[int, ProcessStacks]:
    """The stacks of several processes, a few at once. Without `pause` they run on, and a stack may be torn."""
    program = find_py_spy()
    if program is None:
        missing = "py-spy is not installed: pip install py-spy"
        return {pid: _told_by_itself(pid) or ProcessStacks(pid, error=missing) for pid in pids}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(pids, pool.map(lambda pid: _take(program, pid, timeout, pause, values), pids), strict=True))


def _take(program: str, pid: int, timeout: float, pause: bool, values: bool) -> ProcessStacks:
    command = [program, "dump", "--json", "--pid", str(pid), *(["--locals"] if values else [])]
    process = sample_process(pid)
    is_stopped = process is not None and process.state in "Tt"  # py-spy would wait for it to be paused
    done = _run(command, timeout) if pause and not is_stopped else ""
    if isinstance(done, str) and not is_alive(pid):
        return ProcessStacks(pid, error=ENDED)
    if isinstance(done, str):  # a container's filter may refuse to pause a process and let its memory be read
        done = _run([*command, "--nonblocking"], timeout)
    if isinstance(done, str):
        return _told_by_itself(pid) or ProcessStacks(pid, error=done)
    try:
        return parse_json(pid, done.decode("utf-8", "replace"))
    except (ValueError, KeyError, TypeError):
        return ProcessStacks(pid, error="py-spy printed something that is not its JSON")


def _told_by_itself(pid: int) -> ProcessStacks | None:
    """What the watch inside tells, where there is one."""
    answer = ask_inside(pid)
    try:
        return parse_json(pid, json.dumps(answer["threads"])) if answer is not None else None
    except (ValueError, KeyError, TypeError):
        return None


def take_native(pid: int, timeout: float = 15.0) -> str | None:
    """The stacks with native frames, as py-spy prints them. Reading a large library's symbols takes seconds of CPU."""
    program = find_py_spy()
    if program is None:
        return None
    done = _run(["nice", program, "dump", "--native", "--pid", str(pid)], timeout)
    return None if isinstance(done, str) else done.decode("utf-8", "replace")


def _run(command: list[str], timeout: float) -> bytes | str:
    """What the program printed; a string is what went wrong."""
    environment = {**os.environ, "RUST_BACKTRACE": "0"}
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return f"no answer within {timeout:.0f} s"
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode("utf-8", "replace").strip()
    if "ermission" in said or "EPERM" in said or "not permitted" in said:
        return GRANT
    return said.splitlines()[0][:200] if said else f"py-spy ended with {done.returncode}"


def parse_json(pid: int, text: str) -> ProcessStacks:
    """py-spy's JSON: a list of threads, innermost frame first."""
    threads = []
    for thread in json.loads(text):
        frames = tuple(
            Frame(frame["filename"], int(frame["line"] or 0), frame["name"]) for frame in reversed(thread["frames"])
        )
        # a script that never imported `threading` has threads without names
        is_main = thread.get("os_thread_id") == pid
        name = "MainThread" if is_main else thread.get("thread_name") or ""
        told = [frame.get("locals") for frame in reversed(thread["frames"])]
        values = tuple({one["name"]: str(one["repr"]) for one in some or ()} for some in told) if any(told) else ()
        threads.append(Thread(name, bool(thread.get("active")), frames, bool(thread.get("owns_gil")), values))
    threads.sort(key=lambda thread: thread.name != "MainThread")
    return ProcessStacks(pid, tuple(threads), command=command_of(pid))


def as_text(stacks: Iterable[ProcessStacks]) -> str:
    """In py-spy's own form, so that what reads py-spy's text reads this."""
    lines: list[str] = []
    for one in stacks:
        lines += [f"Process {one.pid}: {one.command}", ""]
        if one.error:
            lines += [f"no stacks: {one.error}", ""]
        for thread in one.threads:
            if thread.name.startswith(OUR_THREADS):
                continue
            state = "active" if thread.active else "idle"
            lines.append(f'Thread {one.pid} ({state}{"+gil" if thread.holds_gil else ""}): "{thread.name}"')
            lines += [f"    {frame.function} ({frame.file}:{frame.line})" for frame in reversed(thread.frames)]
            lines.append("")
    return "\n".join(lines) + "\n"
