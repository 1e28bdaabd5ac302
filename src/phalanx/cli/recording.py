"""`--record` of `phalanx run`: its optional value, and what is done before and after a recorded job."""

from __future__ import annotations

import atexit
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from phalanx.replay.record import (
    INSIDE,
    REFUSED,
    Mode,
    framework_of,
    frameworks_for,
    keep_sources,
    lacks_steps,
    settings_for,
    size_of,
)
from phalanx.run.recorder import Recorder
from phalanx.run.spec import JobSpec


class RunCommand(TyperCommand):
    """Lets `--record` stand without a value, which the parser has no notion of."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        return super().parse_args(ctx, with_mode(args, self._options_with_value()))

    def _options_with_value(self) -> set[str]:
        return {
            name
            for option in self.params
            if isinstance(option, TyperOption) and not option.is_flag
            for name in (*option.opts, *option.secondary_opts)
        }


def with_mode(arguments: list[str], with_value: set[str]) -> list[str]:
    """The arguments with `--record` written out as `--record=light`, up to the script; what follows it is the script's."""
    found: list[str] = []
    place = 0
    while place < len(arguments):
        word = arguments[place]
        if not word.startswith("-") or word == "--":
            break
        found.append(f"{word}={Mode.LIGHT.value}" if word == "--record" else word)
        place += 1
        if word in with_value and word != "--record" and place < len(arguments):
            found.append(arguments[place])
            place += 1
    return found + arguments[place:]


def begin_recording(
    mode: Mode | None,
    command: list[str],
    is_module: bool,
    keep_steps: int,
    every_steps: int,
    every_seconds: float,
) -> Recorder | None:
    """The recorder that ranks are to load; None where no recording is wanted."""
    if mode is None:
        return None
    # Only here: a job that is not recorded starts without them.
    from phalanx.replay.inside.phalanx_record.segments import make_room
    from phalanx.replay.native import Native
    from phalanx.replay.salvage import save_ring

    folder = sources_folder(command, is_module)
    native = Native()
    atexit.register(native.close)
    settings = settings_for(mode, folder, keep_steps, every_steps, every_seconds) | {"native": native.path}
    if mode is not Mode.RING:
        return Recorder(INSIDE, settings, frameworks_for(mode), REFUSED)
    return Recorder(INSIDE, settings, frameworks_for(mode), REFUSED, make_room, save_ring)


def end_recording(bundle: Path, recorder: Recorder, report: Mapping[str, Any] | None, spec: JobSpec) -> None:
    """Keep the sources, and say what there is now, and how the rank to blame is seen again."""
    from phalanx.replay.kernel import make_for_later

    keep_sources(bundle, Path(str(recorder.settings["script"])))
    if make_for_later(bundle):
        typer.echo(
            "phalanx: what makes recording cheaper is compiled for later jobs, at the lowest priority; PHALANX_NO_COMPILER=1 does without",
            err=True,
        )
    whole, tensors = size_of(bundle)
    if not whole:
        typer.echo("phalanx: nothing was recorded: no rank made a process group", err=True)
        return
    mode = recorder.settings["mode"]
    how = "" if mode == Mode.LIGHT else f", {tensors / 1e6:.1f} MB of it results and checkpoints"
    accused = ((report or {}).get("verdict") or {}).get("culprit_ranks") or [0]
    which = "--all" if mode == Mode.LIGHT else f"--rank {accused[0]}"
    again = f"again: {shlex.join(['phalanx', 'replay', str(bundle), *which.split(), *_what_replay_needs(spec)])}"
    if mode == Mode.LIGHT and framework_of(bundle) != "torch":
        again = f"to be compared with another run: phalanx compare {bundle} OTHER"
    typer.echo(f"phalanx: recorded ({mode}): {whole / 1e6:.1f} MB{how}; {again}", err=True)
    if lacks_steps(bundle):
        typer.echo(
            "phalanx: no optimizer of PyTorch's stepped, so no steps were counted and there are no checkpoints; a script that trains without one "
            "says so after each pass: phalanx.checkpoint(model=model, step=number)",
            err=True,
        )


def _what_replay_needs(spec: JobSpec) -> list[str]:
    """What the recording alone does not tell from this folder: a script outside of it, another interpreter."""
    found = ["--python", spec.python] if spec.python is not None else []
    script = Path(spec.command[0])
    is_script = not (spec.is_module or spec.is_program) and script.is_file()
    if is_script and not script.resolve().is_relative_to(Path.cwd().resolve()):
        found += ["--script", str(script)]
    return found


def sources_folder(command: list[str], is_module: bool) -> Path:
    """The folder of the user's own files: the script's, or where a module is looked for."""
    if is_module or not command or not command[0].endswith(".py"):
        return Path.cwd()
    return Path(command[0]).resolve().parent
