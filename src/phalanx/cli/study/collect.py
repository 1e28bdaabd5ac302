"""`phalanx study collect`: new issues into a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phalanx.cli.study.ending import told_errors

_EPILOG = """\
Tokens come from the environment only: GITHUB_TOKEN (or GH_TOKEN), STACKEXCHANGE_KEY. Without them both APIs allow few requests.

Examples:

    phalanx study collect horovod nccl --into issues/

    phalanx study collect --repo me/mine --keywords 'nccl|gloo' --into issues/

    phalanx study collect stackoverflow --dump stackoverflow.com-Posts.7z --into issues/"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=_EPILOG)(collect)


def collect(
    presets: Annotated[
        list[str] | None, typer.Argument(help="Presets; `--list` shows them.", show_default=False)
    ] = None,
    into: Annotated[Path, typer.Option(help="The collection's folder; one that exists is continued.")] = Path(
        "collection"
    ),
    repo: Annotated[list[str] | None, typer.Option(help="A repository, OWNER/NAME; may be given again.")] = None,
    keywords: Annotated[
        str | None, typer.Option(help="Only posts in which this expression is found (any case).")
    ] = None,
    discussions: Annotated[bool, typer.Option(help="Of --repo, the discussions too.")] = False,
    replies: Annotated[bool, typer.Option(help="Comments and answers too: one more request an issue.")] = False,
    since: Annotated[str, typer.Option(help="On the first run: only what changed since this time.")] = "",
    dump: Annotated[
        Path | None,
        typer.Option(help="Read a Stack Exchange dump (Posts.xml, .7z, .zst, .gz, .bz2, .xz) instead of the API."),
    ] = None,
    own: Annotated[Path | None, typer.Option("--presets", help="A TOML file with presets of your own.")] = None,
    github_api: Annotated[
        str, typer.Option(help="GitHub's API, or that of your own GitHub server.")
    ] = "https://api.github.com",
    stackexchange_api: Annotated[str, typer.Option(help="Stack Exchange's API.")] = "https://api.stackexchange.com/2.3",
    max_wait: Annotated[float, typer.Option(help="The longest wait for a rate limit, in seconds.")] = 4000.0,
    processes: Annotated[
        int | None, typer.Option(help="For --dump: how many processes; all cores if not given.")
    ] = None,
    on: Annotated[str, typer.Option(help="For --dump: `local`, or `ray` for several machines.")] = "local",
    listing: Annotated[bool, typer.Option("--list", help="Show the presets and stop.")] = False,
) -> None:
    """Collect issues, discussions and questions; interrupted or repeated, it goes on where it was."""
    from phalanx.study.collect.presets import load_presets, pick
    from phalanx.study.collect.run import Collected, Options, collect_all, collect_dump
    from phalanx.study.dump.archive import packing_of
    from phalanx.study.dump.engines import pick_engine

    def tell(text: str) -> None:
        typer.echo(text, err=True)

    with told_errors():
        if listing:
            for preset in load_presets(own).values():
                typer.echo(f"{preset.name:<14} {', '.join(preset.repositories) or preset.site}")
            return
        chosen = pick(presets or [], repo or [], keywords, discussions, own)
        if not chosen:
            typer.echo("phalanx: name a preset (--list shows them) or a repository (--repo OWNER/NAME)", err=True)
            raise typer.Exit(2)
        options = Options(since, replies, github_api, stackexchange_api, max_wait)
        result: Collected
        if dump is not None:
            if on == "ray" and packing_of(dump):
                tell(f"{dump}: packed, so it is read as one stream on this machine; unpack it to read it on Ray")
            result = collect_dump(chosen, into, dump, pick_engine(on, processes), tell)
        else:
            result = collect_all(chosen, into, options, tell)
    counts = result.counts
    typer.echo(
        f"{counts.new} new, {counts.updated} changed, {counts.unchanged} known already, {counts.left_out} not asked for, {counts.bad} that could not be used"
    )
    for place, reason, _, times in result.problems:
        typer.echo(f"  {times} × {place}: {reason}")
    typer.echo(
        f"{result.total} posts in {into}, {result.duplicates} repeat another ({result.across_sources} across sources); Parquet in {into / 'posts'}"
    )
