"""From the job as it was asked for to each rank's command and environment. Pure: nothing is started here."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.frameworks import keras
from phalanx.frameworks.launching import Launchable, Meeting, Seat, has_own_devices, load_launchable, seats_of
from phalanx.run.cores import thread_variables
from phalanx.run.recorder import Recorder
from phalanx.run.script import module_file, recognise_script
from phalanx.run.spec import JobSpec
from phalanx.sources.secrets import redact_environment


class PlanError(Exception):
    """The job cannot be started as it was asked for; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What every rank runs, and what is to be said of it before it starts."""

    spec: JobSpec
    argv: tuple[str, ...]
    name: str
    seats: tuple[Seat, ...]
    framework: Launchable
    told_by: str
    threads: str
    environment: Mapping[str, str]  # of every rank
    devices: tuple[str | None, ...]  # by local rank: what CUDA_VISIBLE_DEVICES is set to
    own: Mapping[int, Mapping[str, str]] = field(default_factory=dict)  # what only some ranks find, by rank
    recorder: Recorder | None = None

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.seats)

    @property
    def roles(self) -> dict[int, str]:
        """`ps 0` by rank, where the job has roles."""
        return {seat.rank: f"{seat.role} {seat.index}" for seat in self.seats} if self.spec.roles else {}

    def announcement(self) -> str:
        """One line on what was decided for the user."""
        ranks = f"{self.size} rank{'s' if self.size > 1 else ''}"
        roles = ", ".join(f"{seat.rank} is {seat.role} {seat.index}" for seat in self.seats)
        shown = f" ({roles})" if self.spec.roles else ""
        return f"{ranks}{shown}, {self.told_by}, {self.threads}"

    def variables(self, seat: Seat, meeting: Meeting) -> dict[str, str]:
        """The whole environment of one rank, without what a watch adds."""
        found = dict(self.environment)
        found |= {
            name: value
            for name, value in self.framework.variables(seat, meeting).items()
            if name not in self.spec.environment  # what the user says on the command line stands
        }
        if (devices := self.devices[seat.at.local_rank]) is not None:
            found |= {"CUDA_VISIBLE_DEVICES": devices, "HIP_VISIBLE_DEVICES": devices}
        return found | dict(self.own.get(seat.rank, {}))


def what_is_set(rank: int, variables: Mapping[str, str]) -> str:
    """In full what a rank finds that this command was not started with: nobody should have to guess what a launcher changes."""
    added = {name: value for name, value in variables.items() if os.environ.get(name) != value}
    shown = [f"{name}={shlex.quote(value)}" for name, value in redact_environment(added).items()]
    return f"set for rank {rank}: {' '.join(shown)}"


def make_plan(spec: JobSpec, inherited: Mapping[str, str], folder: Path, recorder: Recorder | None = None) -> Plan:
    """Decide all that can be decided before anything runs. Raises PlanError."""
    argv, name, script = _command(spec, folder)
    size = _size(spec)
    environment = {**inherited, **spec.environment}
    framework, told_by = _framework(spec, script, environment.get("KERAS_BACKEND", ""))
    if framework.NAME == "keras":
        environment, told_by = _with_backend(spec, script, environment, told_by, size)
    if recorder is not None and (refusal := recorder.refusal(framework, told_by, environment)):
        raise PlanError(refusal)
    threads, said = thread_variables(size, environment)
    environment |= threads
    environment.setdefault("PYTHONUNBUFFERED", "1")
    if spec.virtual_devices:
        environment |= _virtual_devices(spec.virtual_devices, framework, environment)
    return Plan(
        spec=spec,
        argv=argv,
        name=name,
        seats=seats_of(size, spec.roles),
        framework=framework,
        told_by=told_by,
        threads=said,
        environment=environment,
        devices=_devices(spec.devices, size, framework),
        recorder=recorder,
    )


def _command(spec: JobSpec, folder: Path) -> tuple[tuple[str, ...], str, Path | None]:
    """The argument list, a name for the bundle, and the script to look into, if there is one."""
    if not spec.command:
        raise PlanError("nothing to run: give a script, `-m module`, or `-- program`")
    first, *rest = spec.command
    python = spec.python or sys.executable
    if spec.is_module:
        return (python, "-m", first, *rest), first.split(".")[-1], module_file(first, folder)
    if not spec.is_program:
        script = folder / first
        if not script.is_file():
            hint = "; a program that is not a Python script is given after `--`" if shutil.which(first) else ""
            raise PlanError(f"{first}: no such script in {folder}{hint}")
        if script.suffix != ".py" and os.access(script, os.X_OK) and not _is_python(script):
            return (str(script), *rest), script.stem, None
        return (python, first, *rest), script.stem, script
    program = shutil.which(first)
    if program is None:
        raise PlanError(f"{first}: no such program; give its path, or check PATH")
    return (first, *rest), Path(first).stem, _script_of_python(first, rest, folder)


def _is_python(script: Path) -> bool:
    """Whether an executable file is a Python script by its first line."""
    with script.open("rb") as file:
        return b"python" in file.readline(200)


def _script_of_python(program: str, arguments: list[str], folder: Path) -> Path | None:
    """The script in `python train.py`, so that it can be looked into as well."""
    if not Path(program).name.startswith("python"):
        return None
    given = next((argument for argument in arguments if not argument.startswith("-")), None)
    return folder / given if given and (folder / given).is_file() else None


def _size(spec: JobSpec) -> int:
    if spec.roles:
        total = sum(spec.roles.values())
        if spec.size is not None and spec.size != total:
            raise PlanError(f"-n {spec.size}, but the roles add up to {total}: leave -n out, or make them agree")
        return total
    size = 1 if spec.size is None and spec.virtual_devices else spec.size
    if size is None:
        raise PlanError("say how many ranks to start: -n 4")
    if not 1 <= size <= 4096:
        raise PlanError(f"-n {size}: the number of ranks must be between 1 and 4096")
    return size


def _framework(spec: JobSpec, script: Path | None, keras_backend: str) -> tuple[Launchable, str]:
    known = load_launchable()
    if spec.framework is not None:
        if spec.framework not in known:
            raise PlanError(f"--framework {spec.framework}: not known; one of {', '.join(sorted(known))}")
        return known[spec.framework], f"{spec.framework} (as you say)"
    if spec.roles:
        return known["tensorflow"], "tensorflow (by the roles)"
    seen = recognise_script(script, keras_backend) if script is not None else None
    if seen is not None and seen.framework is not None:
        return known[seen.framework], f"{seen.framework} ({seen.told_by})"
    if seen is not None and seen.speaks_mpi:
        raise PlanError(
            "the script speaks MPI (mpi4py), and MPI's ranks are started by its own launcher. Watch that launcher as one "
            f"program: phalanx run -n 1 -- mpirun -n {spec.size or 4} python {' '.join(spec.command)}. "
            "If it only reads its rank from variables: --framework mpi"
        )
    return known["torch"], "framework not recognised: torchrun's variables are set, --framework says otherwise"


def _with_backend(
    spec: JobSpec, script: Path | None, environment: dict[str, str], told_by: str, size: int
) -> tuple[dict[str, str], str]:
    """What Keras computes with: by `--env`, the environment, what the script sets itself, keras.json. Raises PlanError where ranks would
    each train alone: JAX's processes work together only if the script joins them."""
    seen = recognise_script(script) if script is not None else None
    set_by_script = seen.keras_backend if seen is not None else ""
    chosen = spec.environment.get("KERAS_BACKEND") or set_by_script or keras.backend(environment)
    if chosen == "jax" and size > 1 and spec.framework is None and seen is not None and not seen.joins_jax:
        raise PlanError(
            f"{script.name if script is not None else 'the script'} computes with Keras on JAX and never joins its processes, so {size} ranks would "
            f"train {size} models apart. Call `keras.distribution.initialize()` before anything else, which finds all it needs in the "
            f"environment of a rank, and `keras.distribution.set_distribution({_data_parallel(seen.uses_tf_data)}; or start one process: "
            f"phalanx run --virtual-devices {size}. `--framework keras` starts it as it is"
        )
    return {**environment, "KERAS_BACKEND": chosen}, f"{told_by} on {chosen}"


def _data_parallel(uses_tf_data: bool) -> str:
    """Keras divides a `tf.data.Dataset` among processes by itself, and refuses everything else unless it is told not to."""
    if uses_tf_data:
        return "keras.distribution.DataParallel())`"
    return (
        "keras.distribution.DataParallel(auto_shard_dataset=False))`, and give each rank its own part of the data "
        "(`x[jax.process_index()::jax.process_count()]`): Keras divides a tf.data.Dataset only"
    )


def _virtual_devices(count: int, framework: Launchable, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that divide the processor. JAX has one; for TensorFlow a folder of ours on the path does it when that is imported."""
    name = environment.get("KERAS_BACKEND", "") if framework.NAME == "keras" else framework.NAME
    if name == "torch":
        raise PlanError(
            f"--virtual-devices {count}: PyTorch cannot divide a processor into devices. Start ranks instead: phalanx run -n {count}"
        )
    flags = f"{environment.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}".strip()
    found = {"XLA_FLAGS": flags}
    if name in ("tensorflow", "keras"):
        path = (str(Path(__file__).with_name("virtual")), environment.get("PYTHONPATH", ""))
        found |= {"PHALANX_VIRTUAL_DEVICES": str(count), "PYTHONPATH": os.pathsep.join(filter(None, path))}
    return found


def _devices(wish: str | None, size: int, framework: Launchable) -> tuple[str | None, ...]:
    """What each rank sees: all of a list where ranks choose by their local number, its share where a rank takes all it
    sees; `0/1,2` gives each rank what stands for it; `none` hides every device."""
    if wish is None:
        return (None,) * size
    if wish.strip().lower() in ("none", "cpu"):
        return ("",) * size
    if "/" in wish:
        groups = [group.strip() for group in wish.split("/")]
        if len(groups) != size:
            raise PlanError(f"--devices {wish}: {len(groups)} groups for {size} ranks; give one for each")
        return tuple(groups)
    listed = [device.strip() for device in wish.split(",") if device.strip()]
    if len(set(listed)) != len(listed) or not listed:
        raise PlanError(f"--devices {wish}: give each device once, as in 0,1,2,3")
    if not has_own_devices(framework) or size == 1:
        return (",".join(listed),) * size
    if len(listed) % size:
        raise PlanError(
            f"--devices {wish}: {len(listed)} devices cannot be dealt out evenly to {size} ranks, and a rank of "
            f"{framework.NAME} takes all that it sees; say it by rank, as in 0/1,2"
        )
    share = len(listed) // size
    return tuple(",".join(listed[rank * share : (rank + 1) * share]) for rank in range(size))
