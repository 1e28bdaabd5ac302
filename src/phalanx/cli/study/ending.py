"""How the commands of `phalanx study` end: errors as one line, an interruption as one line, never a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from phalanx.study.errors import StudyError


@contextmanager
def told_errors() -> Iterator[None]:
    """Turn what can go wrong into a message and exit code 2."""
    try:
        yield
    except StudyError as error:
        typer.echo(f"phalanx: {error}", err=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        typer.echo("phalanx: interrupted; what was finished is kept, the same command goes on from there", err=True)
        raise typer.Exit(130) from error
