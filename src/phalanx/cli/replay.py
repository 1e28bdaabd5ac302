"""`phalanx replay`: a recorded rank again, alone, on one machine."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from phalanx.replay.command import command_of
from phalanx.replay.divergence import Judgement, judge_all, judge_rank
from phalanx.replay.export import Exported, export
from phalanx.replay.recordings import ReplayError, damage_is_told, open_recording
from phalanx.replay.rerun import Wish
from phalanx.replay.story import print_judgement

_EXAMPLES = """\
Examples:

    phalanx replay phalanx-runs/20260301-141502-train --rank 3

    phalanx replay BUNDLE --rank 3 --from 120 --to 124

    phalanx replay BUNDLE --rank 3 --break 'step==9'

    phalanx replay BUNDLE --all

    phalanx replay BUNDLE --rank 3 -- --epochs 1

Exits with 0 if the replay agrees with the recording bit for bit, 1 if it differs, 2 if it could not be done."""


class ReplayFormat(StrEnum):
    """How the outcome is written."""

    TEXT = "text"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog=_EXAMPLES)(replay)


def replay(
    bundle: Annotated[Path, typer.Argument(help="What `phalanx run --record` left.", show_default=False)],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="After `--`: arguments for the script instead of the recorded ones.")
    ] = None,
    rank: Annotated[int | None, typer.Option(help="The rank to replay, alone.", min=0)] = None,
    everyone: Annotated[bool, typer.Option("--all", help="The whole job again, with real collectives.")] = False,
    first: Annotated[
        int | None, typer.Option("--from", help="Begin at the nearest checkpoint before this step.", min=0)
    ] = None,
    last: Annotated[int | None, typer.Option("--to", help="End after this step.", min=0)] = None,
    debugger: Annotated[
        bool, typer.Option("--pdb", help="Stop in the debugger where it differs, ends or fails.")
    ] = False,
    condition: Annotated[
        str, typer.Option("--break", help="Stop in the debugger when this holds: step==9, op=='barrier', call==120.")
    ] = "",
    script: Annotated[Path | None, typer.Option(help="The script, where it is not found below this folder.")] = None,
    python: Annotated[
        str | None, typer.Option(help="The interpreter that runs the script; this one otherwise.")
    ] = None,
    attempt: Annotated[int | None, typer.Option(help="Which attempt of the job; the last otherwise.", min=0)] = None,
    once: Annotated[bool, typer.Option("--once", help="No second replay to tell chance from hardware.")] = False,
    trust_objects: Annotated[
        bool, typer.Option("--trust-objects", help="Unpickle whatever objects the recording holds. Runs its code.")
    ] = False,
    export_to: Annotated[
        Path | None, typer.Option("--export", help="Write a reproducer for a colleague into this new folder instead.")
    ] = None,
    include: Annotated[
        list[Path] | None, typer.Option(help="With --export: data that the script reads. Left out otherwise.")
    ] = None,
    share: Annotated[
        bool, typer.Option("--share", help="With --export: let others read the folder, as your umask says.")
    ] = False,
    form: Annotated[
        ReplayFormat, typer.Option("--format", "-f", help="json: the outcome alone on standard output.")
    ] = ReplayFormat.TEXT,
) -> None:
    """Run a recorded rank again, alone: the script as it is, its collectives answered from the recording.

    All that the rank hands to its collectives is compared with the recording, and the first difference is named: step,
    collective, parameter, line of your code.
    """
    try:
        if (rank is None) == (not everyone):
            raise ReplayError("say which rank to replay: --rank 3; or --all for the whole job")
        _check_condition(condition)
        recording = open_recording(bundle, attempt)
        command = command_of(recording, Path.cwd(), script, arguments or None, python)
        if export_to is not None:
            if rank is None:
                raise ReplayError("--export is for one rank: say which, --rank 3")
            with damage_is_told(bundle):
                done = export(recording, rank, command, export_to, first, last, include or [], trust_objects, share)
            _export(done)
            return
        as_json = form is ReplayFormat.JSON
        wish = Wish(
            first=first,
            last=-1 if last is None else last,
            debugger=debugger,
            condition=condition,
            trusts_objects=trust_objects,
            quiet=as_json,
        )
        typer.echo(
            f"phalanx: replaying {'all ranks' if everyone else f'rank {rank}'} of {recording.size}: {command.shown()}",
            err=True,
        )
        with damage_is_told(bundle), tempfile.TemporaryDirectory(prefix="phalanx-replay-") as work:
            if everyone:
                judgement = judge_all(recording, command, wish, Path(work))
            else:
                judgement = judge_rank(
                    recording, int(rank or 0), command, wish, Path(work), once or debugger or bool(condition)
                )
    except ReplayError as error:
        typer.echo(f"phalanx: {error}", err=True)
        raise typer.Exit(2) from error
    _show(judgement, as_json)
    raise typer.Exit(judgement.status)


def _export(done: Exported) -> None:
    missing = f"; not found: {', '.join(done.left_out)}" if done.left_out else ""
    typer.echo(
        f"phalanx: {done.folder}: steps {done.begin} to {done.last}, {done.size / 1e6:.1f} MB{missing}; python repro.py runs it"
    )


def _check_condition(condition: str) -> None:
    try:
        compile(condition or "True", "--break", "eval")
    except SyntaxError as error:
        raise ReplayError(f"--break {condition}: not a Python expression ({error.msg}); such as step==9") from error


def _show(judgement: Judgement, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(judgement.to_json(), indent=2, ensure_ascii=False) + "\n")
    else:
        print_judgement(judgement, color=sys.stderr.isatty() and "NO_COLOR" not in os.environ)
