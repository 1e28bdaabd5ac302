"""`phalanx mcp`: the verbs as tools for an assistant, over standard input and output."""

from __future__ import annotations

import sys

import typer

_EXAMPLES = """\
What an assistant is told, in its own settings:

    {"mcpServers": {"phalanx": {"command": "phalanx", "args": ["mcp"]}}}

Nothing leaves this machine: the assistant that starts the server reads its answers, and nobody else.

Exit codes: 0 the assistant hung up, 2 the MCP package is missing."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog=_EXAMPLES)(mcp)


def mcp() -> None:
    """Serve diagnose, attach, check, verify and explain to an assistant (Model Context Protocol, over stdio)."""
    try:
        from phalanx.mcp.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        typer.echo("phalanx: the MCP package is missing; pip install 'phalanx-training[mcp]'", err=True)
        raise typer.Exit(2) from None
    from phalanx.cli.rule_text import text_of_rule

    if sys.stdin.isatty():
        typer.echo("phalanx: an assistant starts this and talks to it; see phalanx mcp --help", err=True)
    make_server(text_of_rule).run("stdio")
