"""The verbs as one application. Each is a module of this folder with `register(app)`."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache as remembered
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from phalanx import __version__, cache

_FOLDER = Path(__file__).parent


@remembered
def _modules() -> frozenset[str]:
    """The modules of this folder, most of which are verbs."""
    return frozenset(module.name for module in iter_modules([str(_FOLDER)]))


class _Verbs(TyperGroup):
    """The verbs, each imported when it is called: what one of them needs should not slow the others down.

    Help and completion need no more than names and descriptions, which are kept until a file of this folder changes.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """All verbs by name."""
        return sorted({*self._described(), *self.commands})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb of this name, or as long as it was not called what help says of it."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        words = self._described().get(cmd_name)
        return None if words is None else TyperCommand(cmd_name, help=words, rich_markup_mode="markdown")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that is called; its module is called like it, or any may have it."""
        if args and args[0] not in self.commands:
            if args[0] in _modules():
                self._take_in(args[0])
            if args[0] not in self.commands:
                self._take_in_all()
        return super().resolve_command(ctx, args)

    def _take_in_all(self) -> None:
        for module in sorted(_modules()):
            self._take_in(module)

    def _take_in(self, module: str) -> None:
        verb = import_module(f"{__package__}.{module}")
        if hasattr(verb, "register"):
            alone = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False, callback=lambda: None)
            verb.register(alone)
            for name, command in get_group(alone).commands.items():
                self.commands.setdefault(name, command)

    def _described(self) -> dict[str, str]:
        """Every verb and its description."""
        key = cache.key_of([__version__, *sorted(map(_state, _FOLDER.rglob("*.py")))])
        kept = cache.load("verbs", key)
        if kept is not None:
            with suppress(ValueError):
                found = json.loads(kept)
                if isinstance(found, dict):
                    return {str(name): str(words) for name, words in found.items()}
        self._take_in_all()
        made = {name: command.short_help or command.help or "" for name, command in self.commands.items()}
        cache.save("verbs", key, json.dumps(made).encode())
        return made


def _state(path: Path) -> str:
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


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
