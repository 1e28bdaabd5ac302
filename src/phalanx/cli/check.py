"""`phalanx check`: what would stop a job, looked for on every host before it is started."""

from __future__ import annotations

import difflib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from phalanx.cli.check_hosts import read_given_commands, read_given_hosts
from phalanx.cli.check_output import say_missing_gate, write_checked
from phalanx.cli.progress import Progress
from phalanx.model import Report
from phalanx.preflight.convening import CheckError, Convening, convene, probe_for_print, take_part
from phalanx.preflight.group_result import group_from_json
from phalanx.preflight.launch_line import read_launch_line
from phalanx.preflight.meeting.printed import facts_in, facts_to_print, lines_of
from phalanx.preflight.meeting.seat import seat_of
from phalanx.preflight.options import LIBRARIES, CheckOptions
from phalanx.preflight.printed_report import examine_printed
from phalanx.report import Format
from phalanx.sources.named import read_named_text

_EXAMPLES = """\
Examples:

    phalanx check

    phalanx check train.py

    phalanx check checkpoints/global_step400 --ranks 8

    phalanx check last.ckpt --against other.safetensors

    phalanx check model.pt --against mynet.model:build

    phalanx check --hosts node0,node1 --env MASTER_ADDR=node0 --env MASTER_PORT=29500

    phalanx check --hosts node0,node1 -- torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint node0:29400 train.py

    phalanx check --hosts pod-0,pod-1 --each 'kubectl exec -i {host} --'

    phalanx check --ray auto

    torchrun --nproc-per-node 4 -m phalanx.check

    srun phalanx check --meet /shared/folder

    mpirun -n 8 phalanx check --print | phalanx check --read -

Exit codes: 0 nothing wrong, 1 something would stop the job, 2 the tool could not do its work, or not all of it,
3 only warnings: it may work, but slowly or by luck."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog=_EXAMPLES, context_settings={"allow_interspersed_args": False})(check)


def check(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="Scripts, folders or checkpoints to examine; or, after --, the command that starts the job. Nothing is run."
        ),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            help="Hosts to examine over SSH: a,b or n[0-3], @HOSTFILE, slurm (the allocation), slurm:JOBID; ray: its nodes, without SSH."
        ),
    ] = None,
    each: Annotated[
        list[str] | None,
        typer.Option(
            help="In place of ssh: a command that runs what follows it on a host; {host} is its name. "
            "Give it once for all hosts, or once for each. 'HOST: torchrun …' is that host's launch command, read and not run; "
            "@FILE holds such lines."
        ),
    ] = None,
    ray: Annotated[str | None, typer.Option(help="Nodes of a Ray cluster: its address, or auto.")] = None,
    meet: Annotated[Path | None, typer.Option(help="Under a launcher: a folder that all ranks share.")] = None,
    link: Annotated[
        bool,
        typer.Option(
            help="Under a launcher: ranks that do not find each other call out on the local link (multicast, TTL 1).",
            envvar="PHALANX_CHECK_LINK",
        ),
    ] = True,
    to_print: Annotated[bool, typer.Option("--print", help="Under a launcher: only print this rank's facts.")] = False,
    read: Annotated[str | None, typer.Option(help="Judge what ranks printed: a file, or - for standard input.")] = None,
    alone: Annotated[bool, typer.Option(help="Examine this process alone, though a launcher started it.")] = False,
    env: Annotated[list[str] | None, typer.Option("--env", help="A variable the job will have: NAME=VALUE.")] = None,
    path: Annotated[list[str] | None, typer.Option(help="A path that must be writable everywhere.")] = None,
    space: Annotated[float, typer.Option(help="GiB that such a path must have left.", min=0.0)] = 1.0,
    code: Annotated[list[str] | None, typer.Option(help="A script or folder that must be alike everywhere.")] = None,
    libraries: Annotated[str | None, typer.Option("--for", help="What the job uses: gloo,nccl,mpi,tensorflow.")] = None,
    python: Annotated[str | None, typer.Option(help="The interpreter to use on the hosts.")] = None,
    network: Annotated[bool, typer.Option("--network/--no-network", help="Probe the network between hosts.")] = True,
    quick: Annotated[bool, typer.Option(help="Only small messages: no bandwidth, no large packets.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds that one connection may take.", min=0.1)] = 2.0,
    wait: Annotated[float, typer.Option(help="Seconds to wait for hosts and ranks.", min=0.5)] = 20.0,
    form: Annotated[Format, typer.Option("--format", "-f", help="How to write the report.")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the report to this file.")] = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Show all evidence and fixes.")] = False,
    fix_script: Annotated[bool, typer.Option(help="Print the safe fixes as a shell script; nothing is run.")] = False,
    select: Annotated[str, typer.Option(help="For scripts: only these rules (codes, prefixes, groups or ALL).")] = "",
    ignore: Annotated[str, typer.Option(help="For scripts: without these rules.")] = "",
    fix: Annotated[bool, typer.Option("--fix", help="For scripts: apply the safe repairs and show them.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="For scripts: only show the safe repairs.")] = False,
    against: Annotated[
        str | None,
        typer.Option(
            help="For checkpoints: another checkpoint, or module:factory, which makes the model. That code is run, and nothing else."
        ),
    ] = None,
    ranks: Annotated[int | None, typer.Option(help="For checkpoints: how many ranks will load it.", min=1)] = None,
    values: Annotated[
        bool, typer.Option(help="For checkpoints: look through all numbers for NaN and infinity.")
    ] = True,
) -> None:
    """Look for what would stop a job, on this machine or on all of its hosts, before it is started.

    Facts of all hosts and ranks are compared, the variables of communication libraries are linted, and the network is
    probed. On a host nothing is installed: a small agent runs from memory, on Python 3.8 or later.

    With training scripts, notebooks or folders instead of a command, their source is analysed; nothing is run.

    With checkpoints (torch.save, distributed checkpoints, safetensors, DeepSpeed, Megatron, Lightning, Hugging Face,
    Keras, TensorFlow) their files are examined: complete or not, NaN, what a resumed run would lack. Nothing in them is run.
    """
    _examine_checkpoints(command or [], form, output, everything, against, ranks, values)
    scripts = _scripts(command or [])
    if scripts:
        if not (hosts or each or ray or meet or read or env or to_print):
            from phalanx.cli.linting import LintRequest, codes_of

            asked = LintRequest(scripts, form, output, everything, codes_of(select), codes_of(ignore), fix, diff)
            raise typer.Exit(asked.run())
        command = None
    if hosts is not None and (hosts == "ray" or hosts.startswith("ray:")):
        ray, hosts = hosts.partition(":")[2] or "auto", None
    began = time.monotonic()
    say_missing_gate()
    progress = Progress()
    try:
        _refuse_other_files(command or [])
        _refuse_contradictions(hosts=hosts, each=each, ray=ray, meet=meet, print=to_print, read=read, alone=alone)
        line = read_launch_line(command or [])
        names = read_given_hosts(hosts)
        launches, templates = read_given_commands(each or [], names or ())
        options = CheckOptions(
            environment=_variables(env or [], line.variables),
            paths=tuple(path or ()),
            space=int(space * (1 << 30)),
            launch=line,
            launches=launches,
            code=(*(code or ()), *line.scripts),
            libraries=_libraries(libraries) or line.libraries,
            same_interpreter=python is not None or not (hosts or each),
            network=network,
            large=not quick,
            timeout=timeout,
            patience=min(5.0, wait),
            say=progress.say,
        )
        convening = Convening(names, tuple(templates), python, wait, meet, alone, link, ray)
        if to_print:
            _print(options, convening)
            raise typer.Exit(0)
        report = _examine(options, convening, read)
    except CheckError as error:
        progress.close()
        typer.echo(f"phalanx: {error}", err=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        progress.close()
        typer.echo("phalanx: interrupted", err=True)
        raise typer.Exit(130) from error
    progress.close()
    if report is None:
        raise typer.Exit(0)  # the rank that leads says it for all
    if scripts or line.scripts:
        from phalanx.cli.linting import with_scripts

        report = with_scripts(report, scripts or line.scripts)
    try:
        write_checked(report, form, output, everything, fix_script, time.monotonic() - began)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        typer.echo(f"phalanx: cannot write {output}: {error.strerror}", err=True)
        raise typer.Exit(2) from error
    raise typer.Exit(_status(report))


def _examine_checkpoints(
    words: list[str],
    form: Format,
    output: Path | None,
    everything: bool,
    against: str | None,
    ranks: int | None,
    values: bool,
) -> None:
    """Examine what is named and end, if it is checkpoints."""
    if not words and against is None and ranks is None:
        return
    from phalanx.cli.checkpoints import CheckpointRequest, is_checkpoint_word

    if words and all(map(is_checkpoint_word, words)):
        raise typer.Exit(CheckpointRequest(tuple(words), form, output, everything, against, ranks, values).run())
    if against is not None or ranks is not None:
        unknown = next((word for word in words if not is_checkpoint_word(word)), None)
        said = f"{unknown}: not a checkpoint" if unknown else "--against and --ranks need a checkpoint"
        typer.echo(f"phalanx: {said}", err=True)
        raise typer.Exit(2)


def _scripts(words: Sequence[str]) -> tuple[str, ...]:
    """The words, if all are source to analyse. What analyses source is loaded only for words: ranks of a launcher have none."""
    if not words:
        return ()
    from phalanx.cli.linting import is_script

    return tuple(words) if all(map(is_script, words)) else ()


def _status(report: Report) -> int:
    """What would stop the job goes before what is not known, and that before what works by luck."""
    if any(finding.severity == "error" for finding in report.findings):
        return 1
    if not report.read or not report.is_complete:
        return 2
    return 3 if report.findings else 0


def _refuse_other_files(command: Sequence[str]) -> None:
    """A single file that cannot be started is no launch command: examining this machine instead would look like an all-clear."""
    if len(command) == 1 and Path(command[0]).is_file() and not os.access(command[0], os.X_OK):
        raise CheckError(
            f"{command[0]} is neither a training script (.py, .ipynb) nor a checkpoint; logs are for phalanx diagnose"
        )


def _refuse_contradictions(**given: object) -> None:
    """Options of which one would be ignored without a word."""
    names = [name for name, value in given.items() if value not in (None, False, [])]
    if "each" in names and "hosts" not in names:
        raise CheckError("--each says how to reach a host: name the hosts with --hosts a,b")
    ways = [f"--{name}" for name in names if name != "each"]
    if len(ways) > 1:
        raise CheckError(f"{' and '.join(ways)} exclude each other: give one of them")


def _libraries(given: str | None) -> frozenset[str]:
    if given is None:
        return frozenset()
    names = frozenset(part.strip() for part in given.split(",") if part.strip())
    unknown = sorted(names - LIBRARIES)
    if unknown or not names:
        near = difflib.get_close_matches(unknown[0], LIBRARIES, 1) if unknown else []
        hint = f"; did you mean {near[0]}?" if near else ""
        raise CheckError(f"--for {given}: give some of {', '.join(sorted(LIBRARIES))}{hint}")
    return names


def _examine(options: CheckOptions, convening: Convening, read: str | None) -> Report | None:
    """The report; None where another rank writes it."""
    if read is not None:
        return _read(read, options)
    is_driver = convening.alone or convening.each or convening.hosts is not None or convening.ray is not None
    seat = None if is_driver else seat_of({**os.environ, **options.environment})
    if seat is not None:
        return take_part(seat, convening, options)
    return convene(convening, options)


def _print(options: CheckOptions, convening: Convening) -> None:
    """This rank's facts first, whatever happens after; then what the network shows, by the rank that leads those who met."""
    typer.echo("\n".join(facts_to_print(options)))
    sys.stdout.flush()
    seat = seat_of({**os.environ, **options.environment})
    if seat is not None and options.network and (found := probe_for_print(seat, convening, options)) is not None:
        typer.echo("\n".join(lines_of({"group": found.to_json()})))


def _read(source: str, options: CheckOptions) -> Report:
    try:
        text = sys.stdin.read() if source == "-" else read_named_text(Path(source))
    except OSError as error:
        raise CheckError(f"--read {source}: {error.strerror}") from error
    told, broken = facts_in(text.splitlines())
    facts = [one for one in told if "group" not in one]
    if not facts:
        cut = f"; {broken} were cut off" if broken else ""
        raise CheckError(f"--read {source}: no facts of ranks in it{cut}. They come from `phalanx check --print`")
    try:
        groups = [group_from_json(one["group"]) for one in told if "group" in one]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckError(f"--read {source}: results of another release, or changed on their way ({error})") from error
    return examine_printed(facts, groups, broken, options)


def _variables(given: list[str], found: Mapping[str, str]) -> dict[str, str]:
    variables = dict(found)
    for item in given:
        name, mark, value = item.partition("=")
        if not mark or not name:
            raise CheckError(f"--env {item}: give NAME=VALUE")
        variables[name] = value
    return variables
