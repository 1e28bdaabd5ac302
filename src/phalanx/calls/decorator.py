"""`@phalanx.function`: a plain function that runs on several workers when it is called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar, overload

from phalanx.backends import backend_names, check_options, load_backend
from phalanx.backends.backend import BackendError
from phalanx.calls.call import Call
from phalanx.calls.errors import CannotStart
from phalanx.calls.settings import (
    Settings,
    check_choice,
    check_framework,
    check_secrets,
    check_variables,
    seconds,
    workers_of,
)
from phalanx.run.spec import OnStall

P = ParamSpec("P")
R = TypeVar("R")
_OURS: tuple[str, ...] = ("python", "agent_python", "agreement", "project")


class Function(Generic[P, R]):
    """A function with what it asks for. Call it: every rank's result comes back, in order of ranks."""

    def __init__(self, function: Callable[P, R], settings: Settings) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.settings = settings

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> list[R]:
        """Run it and wait. Output of the ranks is shown as it comes. Raises JobFailed where a rank breaks it."""
        return Call(self._function, self.settings, arguments, dict(named), shows=True).wait_here()

    def submit(self, *arguments: P.args, **named: P.kwargs) -> Call[R]:
        """Start it and return at once."""
        return Call(self._function, self.settings, arguments, dict(named), shows=False)

    def local(self, *arguments: P.args, **named: P.kwargs) -> R:
        """The plain function, in this process."""
        return self._function(*arguments, **named)

    def plan(self, *arguments: P.args, **named: P.kwargs) -> str:
        """What would happen, in words and commands; nothing is started."""
        return Call.preview(self._function, self.settings)

    def on(self, backend: str, **options: object) -> Function[P, R]:
        """The same function on another engine: `train.on("ssh", hosts="a,b")`. What the engine does not know is refused."""
        backend, _, hosts = backend.partition("://")
        try:
            found = load_backend(backend)
            wishes = {**({"hosts": hosts} if hosts else {}), **options}
            ours = {name: wishes.pop(name) for name in _OURS if name in wishes}
            check_options(found, wishes)
        except BackendError as error:
            raise CannotStart(str(error)) from error
        settings = replace(self.settings, backend=backend, options=wishes)
        return Function(self._function, _with(settings, ours))

    def options(self, **changed: Any) -> Function[P, R]:
        """The same function with other settings: `train.options(workers=8, timeout="4h")`."""
        return Function(self._function, _settings(self.settings, **changed))

    def __repr__(self) -> str:
        return f"<phalanx.function {self._function.__qualname__}: {self.settings.spec.size} workers on {self.settings.backend}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Function, (self._function, self.settings)


@overload
def function(function: Callable[P, R], /) -> Function[P, R]: ...


@overload
def function(
    *,
    workers: int | tuple[int, int] = 1,
    gpus: int | None = None,
    framework: str | None = None,
    timeout: float | str | None = None,
    retries: int = 0,
    env: Mapping[str, str] | None = None,
    secrets: Sequence[str] = (),
    grace: float = 5.0,
    on_stall: str = "report",
    checkpoints: str | None = None,
    project: str | None = None,
    python: str | None = None,
    agent_python: str | None = None,
    agreement: str = "error",
) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def function(plain: Callable[..., Any] | None = None, /, **asked: Any) -> Any:
    """Make a function run on several workers.

    workers    how many; (2, 4) where it may go on with fewer after a node was lost
    gpus       for each worker; None leaves devices alone, 0 hides them
    framework  torch, tensorflow, keras, horovod, jax, mpi or none; told by the function's imports unless said
    timeout    seconds, or "90s", "15m", "2h"
    retries    how often all ranks are started again when one fails
    env        variables for every rank
    secrets    names of variables of the caller that every rank gets; their values are never written down
    on_stall   report (say it and go on), abort (raise JobFailed), ignore
    checkpoints  a folder that every attempt finds by phalanx.last_checkpoint(); on several nodes a shared one
    python     the ranks' interpreter; on other machines the agent's too, unless agent_python names one that has phalanx
    project    the folder whose files travel to other nodes; the current one unless said
    """
    settings = _settings(Settings(), **asked)
    if plain is not None:
        return Function(plain, settings)
    return lambda given: Function(given, settings)


def _settings(before: Settings, **asked: Any) -> Settings:
    of_job: dict[str, Any] = {}
    changes: dict[str, Any] = {}
    for name, value in asked.items():
        match name:
            case "workers":
                of_job["size"], of_job["fewest"] = workers_of(value)
            case "timeout":
                of_job["timeout"] = seconds(value)
            case "framework":
                of_job["framework"] = check_framework(value)
            case "env":
                of_job["environment"] = check_variables(value)
            case "retries" | "gpus":
                if value is not None and (not isinstance(value, int) or value < 0):
                    raise CannotStart(f"{name}={value!r}: give a whole number from 0")
                of_job["max_restarts" if name == "retries" else name] = value
            case "grace":
                of_job["grace"] = max(0.0, float(value))
            case "on_stall":
                of_job["on_stall"] = OnStall(check_choice(name, value, ("report", "abort", "ignore")))
            case "python":
                of_job["python"] = None if value is None else str(value)
            case "secrets":
                changes["secrets"] = check_secrets(value)
            case "agreement" | "project" | "agent_python" | "checkpoints":
                changes |= _ours(name, value)
            case _:
                raise CannotStart(f'{name}: no such setting; engines\' own options are given by .on("slurm", …)')
    return replace(before, spec=replace(before.spec, **of_job), **changes)


def _ours(name: str, value: Any) -> dict[str, Any]:
    if name == "agreement":
        check_choice(name, value, ("error", "warn", "off"))
    return {name: None if value is None else str(value)}


def _with(settings: Settings, ours: Mapping[str, Any]) -> Settings:
    return _settings(settings, **ours)


def engines() -> list[str]:
    """The names that `.on` takes."""
    return backend_names()
