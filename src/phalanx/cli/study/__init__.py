"""`phalanx study`: the empirical study as a pipeline. One thin file a command."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import typer

study_app = typer.Typer(
    no_args_is_help=True, help="The empirical study behind the rules: reproduce it, extend it with new issues."
)


def register(app: typer.Typer) -> None:
    """Add the verb; each module of this folder adds its command."""
    for module in sorted(module.name for module in iter_modules(__path__)):
        command = import_module(f"{__name__}.{module}")
        if hasattr(command, "register"):
            command.register(study_app)
    app.add_typer(study_app, name="study")
