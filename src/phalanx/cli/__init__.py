"""The command line. One thin file a verb; what they do is in the packages they call."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import typer

from phalanx import __version__

app = typer.Typer(
    name="phalanx",
    help="Finds out why a distributed training job failed: which rank, what symptom, what cause, what to change.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"phalanx {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    """Finds out why a distributed training job failed."""


for _module in sorted(module.name for module in iter_modules(__path__)):
    _verb = import_module(f"{__name__}.{_module}")
    if hasattr(_verb, "register"):
        _verb.register(app)


def main() -> None:
    """Entry point: 0 nothing wrong, 1 findings, 2 the tool could not do its work."""
    try:
        app()
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`): that is no error of ours.
        sys.stderr.close()
        sys.exit(1)
