"""Finds the compiled `kernel.cpp` for the PyTorch of this process, and compiles it: once for each PyTorch, for later jobs.

Compiling takes some 15 seconds of processor time and 0.7 GB of memory, so it is never done beside a job: `phalanx run` has it done
after a recorded job has ended, at the lowest priority, and `python -m phalanx.replay.kernel` does it now. It lies in the
folder `compiled` of the user's cache, and is loaded only if that folder and the file are this user's alone to write.
`PHALANX_NO_COMPILER=1` or `PHALANX_NO_CACHE=1` do without. Also run as a program: `python -I -S compiled.py FACTS`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel.cpp")
_PATIENCE = 900.0  # seconds, at the lowest priority
_KEPT = 4


def facts_of(torch: Any) -> dict[str, str]:
    """What a compiled file depends on, of the PyTorch that is imported."""
    return {
        "folder": os.path.dirname(os.path.abspath(torch.__file__)),
        "version": str(torch.__version__),
        "git": str(getattr(torch.version, "git_version", "")),
        "abi": str(int(getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True))),
    }


def folder() -> str:
    """Where compiled files are kept; empty where nothing is to be kept or compiled."""
    if os.environ.get("PHALANX_NO_CACHE") or os.environ.get("PHALANX_NO_COMPILER") or not hasattr(os, "geteuid"):
        return ""
    given = os.environ.get("XDG_CACHE_HOME", "")
    root = given if os.path.isabs(given) else os.path.expanduser("~/.cache")
    return os.path.join(root, "phalanx", "compiled") if os.path.isabs(root) else ""


def target_of(facts: dict[str, str]) -> str:
    """The file for this PyTorch and this source; empty where there can be none."""
    kept_in = folder()
    if not kept_in:
        return ""
    with open(_SOURCE, "rb") as file:
        digest = hashlib.sha256(file.read() + json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return os.path.join(kept_in, f"kernel-{digest[:32]}.so")


def is_trusted(path: str) -> bool:
    """Whether nobody but this user can have written it."""
    try:
        found = [os.lstat(one) for one in (path, os.path.dirname(path))]
    except OSError:
        return False
    return all(one.st_uid == os.geteuid() and not one.st_mode & 0o022 for one in found)


def is_wanted(facts: dict[str, str]) -> bool:
    """Whether compiling it is worth a try: it is not there, nobody is at it, it has not failed before, and there is a compiler."""
    target = target_of(facts)
    if not target or compiler() is None or not os.path.isdir(os.path.join(facts["folder"], "include", "ATen")):
        return False
    if os.path.exists(target) or os.path.exists(target + ".failed"):
        return False
    try:
        return time.time() - os.stat(target + ".making").st_mtime > _PATIENCE
    except OSError:
        return True


def compiler() -> str | None:
    """The C++ compiler."""
    return next(filter(None, map(shutil.which, (os.environ.get("CXX", "") or "c++", "g++", "clang++"))), None)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def make(facts: dict[str, str], is_patient: bool = True) -> str:
    """Compile it; what went wrong, or nothing. It is there whole, or not at all."""
    target, program = target_of(facts), compiler()
    if not target or program is None:
        return "there is no C++ compiler, or it is switched off"
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    if is_patient:
        os.nice(19)
    lib = os.path.join(facts["folder"], "lib")
    with (
        open(target + ".making", "w", opener=_private),
        tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as aside,
    ):
        made = os.path.join(aside, "kernel.so")
        command = [program, "-std=c++20", "-O1", "-shared", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={facts['abi']}"]
        command += [
            "-I",
            os.path.join(facts["folder"], "include"),
            _SOURCE,
            "-L",
            lib,
            "-ltorch_cpu",
            "-lc10",
            "-o",
            made,
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
            wrong = done.stderr[-4000:] if done.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            wrong = str(error)
        if not wrong:
            os.chmod(made, 0o700)
            os.replace(made, target)
    if wrong:  # another release of PyTorch may have other headers: it is not tried again
        with open(target + ".failed", "w", encoding="utf-8", opener=_private) as file:
            file.write(wrong)
    os.unlink(target + ".making")
    _forget_old(os.path.dirname(target))
    return wrong


def make_later(facts: dict[str, str]) -> None:
    """Have it compiled by a process of its own, which nobody waits for."""
    subprocess.Popen(
        [sys.executable, "-I", "-S", os.path.abspath(__file__), json.dumps(facts)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _forget_old(kept_in: str) -> None:
    made = sorted((entry.stat().st_mtime, entry.path) for entry in os.scandir(kept_in) if entry.is_file())
    for _, path in made[: -2 * _KEPT]:
        os.unlink(path)


if __name__ == "__main__":
    make(json.loads(sys.argv[1]))
