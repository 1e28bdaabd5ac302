"""What a replay runs: the user's script with the recorded arguments and variables, and nothing else that a bundle names.

A bundle may come from anybody. It can choose neither the interpreter, nor a program, nor a script or module that lies in the bundle or outside
of the folder that the user stands in, nor a variable by which other code is loaded.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from phalanx.model import bundle as layout
from phalanx.model import foreign
from phalanx.replay.recordings import Recording, ReplayError
from phalanx.sources.secrets import HIDDEN

# How many ranks there are, who this one is, and what changes how numbers come out.
_TAKEN = re.compile(
    r"RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_RANK|GROUP_WORLD_SIZE|ROLE_\w+|NODE_RANK|MASTER_ADDR|MASTER_PORT"
    r"|TORCHELASTIC_(?:RESTART_COUNT|MAX_RESTARTS|RUN_ID)|TF_CONFIG|HOROVOD_\w+|PYTHONHASHSEED|CUDA_VISIBLE_DEVICES"
    r"|(?:OMP|MKL|OPENBLAS|NUMEXPR)_NUM_THREADS|MKL_CBWR|OMP_(?:DYNAMIC|SCHEDULE|PROC_BIND)|ATEN_CPU_CAPABILITY"
    r"|CUBLAS_WORKSPACE_CONFIG|NVIDIA_TF32_OVERRIDE|ONEDNN_MAX_CPU_ISA|TORCH_(?:ALLOW_TF32_CUBLAS_OVERRIDE)"
    r"|TF_(?:DETERMINISTIC_OPS|CUDNN_DETERMINISTIC|ENABLE_ONEDNN_OPTS|NUM_INTRAOP_THREADS|NUM_INTEROP_THREADS)|KERAS_BACKEND"
    r"|TF_USE_LEGACY_KERAS"
)
# By these other code would be loaded or other programs run.
_NEVER = re.compile(
    r"PYTHON(?!HASHSEED)\w*|LD_\w+|DYLD_\w+|PATH|HOME|SHELL|EDITOR|PAGER|BROWSER|CC|CXX|NVCC|\w*_PATH|\w*_LIBRARIES|\w*PRELOAD\w*|\w*PLUGIN\w*|TRITON_\w+"
)


@dataclass(frozen=True, slots=True)
class Command:
    """What is started for one rank."""

    argv: tuple[str, ...]
    folder: Path  # to run in
    sources: Path  # where the user's own files are
    file: Path  # that is run

    def shown(self) -> str:
        """For a person."""
        file = "" if self.argv[1] != "-m" else f" ({self.file})"
        return " ".join(self.argv[1:]) + file


def command_of(
    recording: Recording, here: Path, script: Path | None, arguments: Sequence[str] | None, python: str | None
) -> Command:
    """The recorded command, checked. Raises ReplayError with what to do."""
    command = _named(recording, here, script, arguments, python)
    _refuse_importable(recording.bundle, command.sources)
    return command


def _named(
    recording: Recording, here: Path, script: Path | None, arguments: Sequence[str] | None, python: str | None
) -> Command:
    recorded = [str(word) for word in recording.manifest["command"]][1:]
    interpreter = python or sys.executable
    is_module = bool(recorded) and recorded[0] == "-m"
    named = recorded[1] if is_module and len(recorded) > 1 else recorded[0] if recorded else ""
    rest = list(arguments) if arguments is not None else recorded[2 if is_module else 1 :]
    if any(HIDDEN in word for word in rest):
        raise ReplayError(
            f"a secret was taken out of the recorded arguments ({' '.join(rest)}): give them all again, after `--`"
        )
    if script is not None:
        if not script.is_file():
            raise ReplayError(f"--script {script}: no such file")
        return Command((interpreter, str(script), *rest), here, script.resolve().parent, script.resolve())
    if is_module:
        file = _module(named, here, recording.bundle)
        return Command((interpreter, "-m", named, *rest), here, here, file)
    if not named.endswith(".py") or named.startswith("-"):
        raise ReplayError(
            f"the recording was made of `{' '.join(recorded)}`, not of a Python script: name it with --script"
        )
    path = _own(here / named, named, here, recording.bundle)
    if not path.is_file():
        raise ReplayError(f"there is no {named} in {here}: change to the script's folder, or name it with --script")
    return Command((interpreter, named, *rest), here, path.parent, path)


def _own(path: Path, named: str, here: Path, bundle: Path) -> Path:
    """Where a path leads to, which must be a file of the user's own: below their folder, and not in the bundle."""
    real = path.resolve()
    if not real.is_relative_to(here.resolve()):
        raise ReplayError(
            f"the recording names {named}, which is not below {here}: change to its folder, or name it with --script"
        )
    if real.is_relative_to(bundle.resolve()):
        raise ReplayError(
            f"the recording names {named}, which lies in the bundle itself: name the script with --script"
        )
    other = next(
        (folder for folder in real.parents if folder.is_relative_to(here.resolve()) and _is_bundle(folder)), None
    )
    if other is not None:
        raise ReplayError(
            f"the recording names {named}, which lies in another bundle, {other}: name the script with --script"
        )
    return real


def _is_bundle(folder: Path) -> bool:
    """Whether this folder came from `phalanx run`, and so perhaps from somebody else."""
    try:
        return str(foreign.read_object(folder / layout.MANIFEST).get("schema", "")).startswith("phalanx.")
    except (OSError, ValueError):
        return False


def _refuse_importable(bundle: Path, folder: Path) -> None:
    """Python looks for modules beside the script first: a bundle called `numpy` with an `__init__.py` would be imported."""
    place = bundle.resolve()
    if place.parent == folder.resolve() and any(place.glob("__init__.*")):
        raise ReplayError(
            f"{bundle} has an __init__ file, and Python would import it as the module {place.name}: move the bundle elsewhere"
        )


def _module(name: str, here: Path, bundle: Path) -> Path:
    """The file of a module of the user's own, below the folder that the user stands in."""
    if not re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", name):
        raise ReplayError(f"the recording names the module {name!r}: name the script with --script")
    path = here
    for part in name.split(".")[:-1]:  # `-m a.b` runs a/__init__.py first
        path = path / part
        _own(path, f"the module {name}", here, bundle)
        _own(path / "__init__.py", f"the module {name}", here, bundle)
    path = path / name.rpartition(".")[2]
    package = (path / "__init__.py", path / "__main__.py")
    files = package if path.is_dir() and not path.with_suffix(".py").is_file() else (path.with_suffix(".py"), *package)
    found = [_own(file, f"the module {name}", here, bundle) for file in files if file.is_file() or file.is_symlink()]
    if not found or not (path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()):
        raise ReplayError(
            f"there is no module {name} below {here}: change to its folder, or name the script with --script"
        )
    return found[-1]


def variables_of(recorded: Mapping[str, str], current: Mapping[str, str], sources: Path) -> dict[str, str]:
    """The environment of a replay: today's, with the recorded values of what makes the rank what it was.

    Beside the known names these are the variables that the user's own files mention.
    """
    return {**current, **taken_variables(recorded, sources)}


def taken_variables(recorded: Mapping[str, str], sources: Path) -> dict[str, str]:
    """The recorded variables that a replay takes over."""
    texts = _texts(sources)
    found: dict[str, str] = {}
    for name, value in recorded.items():
        if HIDDEN in value or _NEVER.fullmatch(name):
            continue
        mentioned = len(name) > 2 and any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)
        if _TAKEN.fullmatch(name) or mentioned:
            found[name] = value
    return found


def _texts(sources: Path) -> list[str]:
    files = [path for path in list(sources.glob("*.py"))[:200] if path.is_file() and path.stat().st_size < 1 << 20]
    return [path.read_text(encoding="utf-8", errors="replace") for path in files]


def inside_variables(folder: Path, told: str, variables: Mapping[str, str]) -> dict[str, str]:
    """What has the replay loaded into the script's process."""
    before = variables.get("PYTHONPATH")
    path = f"{folder}{os.pathsep}{before}" if before else str(folder)
    return {"PYTHONPATH": path, "PHALANX_RECORD": told}
