"""Hosts reached by the system's `ssh`: its configuration, aliases, keys, ports and jump hosts are the user's own.

    train.on("ssh", hosts="a,b")      train.on("ssh://a,user@b")      phalanx run -n 8 --on ssh://a,b train.py

The agent's standard streams go through the SSH connection, so nothing listens for it and nothing passes unencrypted. Host
names are never looked up here: an alias of ssh_config means what `ssh` says it means.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from phalanx.backends.backend import BackendError, Command, Plan, Reach, Request, Started, spread
from phalanx.backends.processes import ProcessJob

NAME = "ssh"
REACH = Reach.STREAMS
OPTIONS: Mapping[str, str] = {
    "hosts": 'names as ssh takes them: "a,user@b"; "a:6,b:2" gives a six workers and b two',
    "config": "another file than ~/.ssh/config, as for ssh -F",
    "port": "another port than the configuration's, for all hosts",
    "ssh": "another program than ssh",
    "connect_timeout": "seconds for a connection; 20 unless said",
}
_HOST = re.compile(
    r"(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9_][A-Za-z0-9_.%-]*|(?:[A-Za-z0-9_.-]+@)?[0-9A-Fa-f:]*::?[0-9A-Fa-f:.%a-z0-9]*"
)


def plan(request: Request) -> Plan:
    """One ssh for each host, its agent speaking through it."""
    hosts, layout = _hosts(request)
    options = ["-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={request.count('connect_timeout', 20)}"]
    options += ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4", "-o", "EscapeChar=none"]
    if config := request.option("config"):
        options += ["-F", config]
    if "port" in request.options:
        options += ["-p", str(request.count("port", 22))]
    remote = _remote_command(request)
    commands = tuple(
        Command(
            (request.option("ssh", "ssh"), *options, "--", host, remote),
            f"the agent on {host}: {count} worker{'s' if count > 1 else ''}",
        )
        for host, count in zip(hosts, layout, strict=True)
    )
    notes = ("ssh never asks: a host that wants a password or has an unknown key is refused",)
    return Plan(layout, commands, nodes=hosts, notes=notes)


def without(options: Mapping[str, object], nodes: tuple[str, ...]) -> Mapping[str, object]:
    """The hosts that are left."""
    given = options.get("hosts")
    names = given.split(",") if isinstance(given, str) else [str(name) for name in given or ()]  # type: ignore[attr-defined]
    return {
        **options,
        "hosts": [name for name in names if name.strip() not in nodes and name.rpartition(":")[0].strip() not in nodes],
    }


def start(plan: Plan, request: Request) -> Started:
    """As children of this process."""
    return ProcessJob(plan, request.folder)


def _remote_command(request: Request) -> str:
    """What the remote shell is given: every word quoted, so that nothing in it means anything to a shell."""
    variables = [f"{name}={value}" for name, value in sorted(request.environment.items())]
    return "exec " + shlex.join(["env", *variables, *request.agent] if variables else list(request.agent))


def _hosts(request: Request) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The hosts, and how many workers each gets. Raises BackendError."""
    given = request.options.get("hosts")
    if isinstance(given, str):
        names = [name.strip() for name in given.split(",") if name.strip()]
    elif isinstance(given, Sequence):
        names = [str(name) for name in given]
    else:
        names = []
    if not names:
        raise BackendError('ssh needs hosts: .on("ssh", hosts="a,b") or --on ssh://a,b')
    hosts, counts = [], []
    for name in names:
        host, mark, count = name.rpartition(":")
        if mark and count.isdigit() and ":" not in host:
            hosts.append(host)
            counts.append(int(count))
        else:
            hosts.append(name)
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise BackendError(f"{host!r}: no name of a host")
    if not counts:
        return tuple(hosts), spread(request.workers, len(hosts))
    if len(counts) != len(hosts) or 0 in counts:
        raise BackendError(f"hosts {','.join(names)}: give the number of workers for every host, or for none")
    if sum(counts) != request.workers:
        raise BackendError(f"hosts {','.join(names)} take {sum(counts)} workers, but {request.workers} are asked for")
    return tuple(hosts), tuple(counts)
