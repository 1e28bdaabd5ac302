"""The verbs as one application. Each is a module of this folder with `register(app)`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from phalanx import __version__


@cache
def _modules() -> frozenset[str]:
    """The modules of this folder, most of which are verbs."""
    return frozenset(module.name for module in iter_modules([str(Path(__file__).parent)]))


class _Verbs(TyperGroup):
    """The verbs, each imported when it is asked for: what one of them needs should not slow the others down."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All verbs, which imports all of them: only help and completion ask."""
        for module in sorted(_modules()):
            self._take_in(module)
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb of this name; its module is called like it, or any may have it."""
        if cmd_name not in self.commands:
            if cmd_name in _modules():
                self._take_in(cmd_name)
            if cmd_name not in self.commands:
                self.list_commands(ctx)
        return super().get_command(ctx, cmd_name)

    def _take_in(self, module: str) -> None:
        verb = import_module(f"{__package__}.{module}")
        if hasattr(verb, "register"):
            alone = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False, callback=lambda: None)
            verb.register(alone)
            for name, command in get_group(alone).commands.items():
                self.commands.setdefault(name, command)


app = typer.Typer(
    name="phalanx",
    cls=_Verbs,
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
