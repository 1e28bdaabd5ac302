"""What `PHALANX=1` runs at the start of every Python process: leaves those alone that cannot be ranks, and waits for a framework.

The package's `.pth` file imports this only where the variable is set. Nothing is done before the process asks for a framework of
distributed training; then one thread starts, which finds out whether this is a rank (`phalanx.embedded.rank`). Nothing may be
raised, printed or imported here that costs time.
"""

import os
import sys

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from phalanx_libraries import Libraries

FRAMEWORKS = ("torch.distributed", "tensorflow", "horovod", "jax", "mpi4py")
# Programs that start ranks, or have nothing to do with them, though they may import a framework or inherit a scheduler's variables.
PROGRAMS = (
    "accelerate", "deepspeed", "fabric", "horovodrun", "ipython", "jupyter", "lightning", "mlflow", "phalanx", "pip", "pip3",
    "pytest", "ray", "tensorboard", "torchrun", "torchx", "uv", "wandb",
)  # fmt: skip
MODULES = (
    "accelerate.commands", "deepspeed.launcher", "ensurepip", "horovod.runner", "ipykernel", "lightning.fabric.cli", "phalanx", "pip",
    "pytest", "ray.scripts", "tensorboard", "torch._inductor", "torch.distributed.launch", "torch.distributed.run", "venv",
)  # fmt: skip
HELPERS = (
    "resource_tracker",
    "semaphore_tracker",
    "forkserver",
    "compile_worker",
    "/ray/dashboard/",
    "/ray/_private/log_monitor",
)
LIBRARIES: "list[Libraries]" = []  # those whose calls are counted, once a framework is there
TAKES_VALUE = ("-W", "-X", "--check-hash-based-pycs")
MARK = "PHALANX_RANK"  # set in a rank's environment: what it starts is not a rank, unless it gets a place of its own
PLACES = (
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID",
    "JAX_PROCESS_ID", "TF_CONFIG",
)  # fmt: skip


def place_of(variables: "Mapping[str, str]") -> str:
    """The variables by which launchers tell processes apart, as one text."""
    return "|".join(variables.get(name, "") for name in PLACES)


def may_be_a_rank(command: "Sequence[str]", variables: "Mapping[str, str]") -> bool:
    """Whether a process is worth a look once it asks for a framework. `command` is that of the interpreter."""
    if variables.get(MARK) == place_of(variables):
        return False  # started by a rank: a data loader's worker, a compiler
    if "PHALANX_JOB" in variables or "PHALANX_INSIDE" in variables:
        return False  # `phalanx run` watches it
    words = list(command[1:])
    while words:
        word = words.pop(0)
        if word == "-m":
            module = words[0] if words else ""
            return not any(module == name or module.startswith(name + ".") for name in MODULES)
        if word == "-c":
            return not any(helper in (words[0] if words else "") for helper in HELPERS)
        if word in TAKES_VALUE:
            words = words[1:]
        elif not word.startswith("-"):
            return os.path.basename(word) not in PROGRAMS and not any(helper in word for helper in HELPERS)
    return True  # read from standard input, or an embedded interpreter


class Herald:
    """An import hook that finds nothing: it tells that the process has asked for a framework."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in FRAMEWORKS:
            try:
                sys.meta_path.remove(self)
                _listen(os.environ)
                import threading

                threading.Thread(target=_look, name="phalanx-watch", daemon=True).start()
            except Exception:  # an import of the user's must never fail for our sake
                pass


def _listen(variables: "Mapping[str, str]") -> None:
    """Horovod's and TensorFlow's calls are counted from the first one on, so before a thread could do it; only where a launcher says that
    this is a rank."""
    if not any(variables.get(name) for name in PLACES if name not in ("WORLD_SIZE", "MASTER_PORT")):
        return
    import threading

    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "phalanx", "run", "watch", "inside")
    sys.path.insert(0, inside)
    try:
        from phalanx_arrivals import Arrivals
        from phalanx_libraries import Libraries
    finally:
        sys.path.remove(inside)
    libraries = Libraries(threading.main_thread().ident or 0, lambda: None)
    sys.meta_path.insert(0, Arrivals({}, libraries.after_imports()))
    LIBRARIES.append(libraries)


def _look() -> None:
    try:
        from phalanx.embedded.rank import keep_watch

        keep_watch()
    except Exception as error:  # the job then runs unwatched
        if os.environ.get("PHALANX", "").lower() == "debug":
            sys.stderr.write("phalanx: the watch did not start: %s: %s\n" % (type(error).__name__, error))


if may_be_a_rank(getattr(sys, "orig_argv", sys.argv), os.environ):
    sys.meta_path.insert(0, Herald())
