"""What a launch command tells of a job: `torchrun --nnodes 2 … train.py` as the variables that it stands for, and mpirun's hosts and slots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

_TORCHRUN = ("torch.distributed.run", "torch.distributed.launch", "torch.distributed.elastic")
# Options of torchrun that take no value; all others take one. Those that are kept have a variable that torchrun itself reads.
_FLAGS = frozenset(["standalone", "no-python", "run-path", "m", "module", "use-env", "virtual-local-rank"])
_KEPT = {
    "nnodes": "PET_NNODES",
    "nproc-per-node": "PET_NPROC_PER_NODE",
    "rdzv-id": "PET_RDZV_ID",
    "rdzv-endpoint": "PET_RDZV_ENDPOINT",
    "rdzv-backend": "PET_RDZV_BACKEND",
    "master-addr": "PET_MASTER_ADDR",
    "master-port": "PET_MASTER_PORT",
}
_COUNT = ("-n", "-np", "--np", "-c", "--n")
_HOSTS = ("-H", "-host", "--host", "--hosts")
_HOSTFILE = ("-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f")
# Options of mpirun and horovodrun that take no value, as far as they stand before a program in practice.
_ALONE = frozenset(
    [
        "--allow-run-as-root",
        "--oversubscribe",
        "-oversubscribe",
        "--use-hwthread-cpus",
        "-v",
        "--verbose",
        "--gloo",
        "--mpi",
        "--tag-output",
        "-l",
    ]
)
_INTERFACES = ("--network-interfaces", "--network-interface")


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """What could be read from a command."""

    program: str = ""  # torchrun, mpirun, horovodrun; empty if it is another
    variables: Mapping[str, str] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()
    libraries: frozenset[str] = frozenset()
    options: Mapping[str, str] = field(default_factory=dict)  # torchrun's, as given
    ranks: int | None = None  # that mpirun is asked to start
    slots: Mapping[str, int] = field(default_factory=dict)  # by host
    prefix: str = ""  # where mpirun is to look for itself on the hosts
    may_share: bool = False  # more ranks than slots are allowed


def read_launch_line(command: Sequence[str], *, own: bool = False) -> LaunchLine:
    """Understands torchrun in its spellings, mpirun, horovodrun and plain Python; of others only the script.

    `own` says that it is the command of one node alone, whose number then counts; settings before the program count too.
    """
    command = list(command)
    settings: dict[str, str] = {}
    while command and re.fullmatch(r"[A-Za-z_]\w*=.*", command[0], re.DOTALL):  # NAME=VALUE torchrun …
        name, _, value = command.pop(0).partition("=")
        settings[name] = value
    line = _read(command, own)
    return replace(line, variables={**settings, **line.variables}) if settings else line


def _read(command: Sequence[str], own: bool) -> LaunchLine:
    if not command:
        return LaunchLine()
    program = PurePath(command[0]).name
    rest = list(command[1:])
    if program.startswith("python") and len(rest) > 1 and rest[0] == "-m" and rest[1].startswith(_TORCHRUN):
        return _torchrun(rest[2:], own)
    if program in ("torchrun", "torchrun.py"):
        return _torchrun(rest, own)
    if program.startswith("mpi") or program in ("prterun", "orterun", "horovodrun"):
        return _mpirun(program, command[0], rest)
    return LaunchLine(scripts=_script(rest))


def _torchrun(words: list[str], own: bool) -> LaunchLine:
    options: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, mark, value = words[at].lstrip("-").replace("_", "-").partition("=")
        if mark:
            value = words[at].partition("=")[2]
        elif name not in _FLAGS and at + 1 < len(words):
            at += 1
            value = words[at]
        options[name] = value
        at += 1
    # The node's own rank is left out where the command is one node's, and the others have another.
    kept = {**_KEPT, "node-rank": "PET_NODE_RANK"} if own else _KEPT
    variables = {kept[name]: value for name, value in options.items() if name in kept}
    is_module = "m" in options or "module" in options
    return LaunchLine("torchrun", variables, () if is_module else _script(words[at:]), options=options)


def _mpirun(program: str, called: str, words: list[str]) -> LaunchLine:
    variables: dict[str, str] = {}
    slots: dict[str, int] = {}
    ranks: int | None = None
    may_share = False
    # Called by its whole path, mpirun looks for its daemon under the same one on all hosts.
    prefix = str(PurePath(called).parent.parent) if called.startswith("/") and program != "horovodrun" else ""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, following = words[at], words[at + 1 : at + 3]
        taken = 0 if name in _ALONE else 1
        if name in _COUNT and following and following[0].isdigit():
            ranks = int(following[0])
        elif name in _HOSTS and following:
            slots |= _listed(following[0].split(","))
        elif name in _HOSTFILE and following:
            slots |= _in_file(following[0])
        elif name == "-x" and following:
            given, mark, value = following[0].partition("=")
            variables |= {given: value} if mark else {}
        elif name in ("--mca", "-mca", "--gmca") and len(following) == 2:
            variables[f"OMPI_MCA_{following[0]}"] = following[1]
            taken = 2
        elif name in ("--prefix", "-prefix") and following:
            prefix = following[0].rstrip("/")
        elif name in _INTERFACES and following:
            variables |= {"HOROVOD_GLOO_IFACE": following[0], "NCCL_SOCKET_IFNAME": following[0]}
        may_share = may_share or "oversubscribe" in f"{name} {following[0] if following and taken else ''}".lower()
        at += 1 + taken
    library = "horovod" if program == "horovodrun" else "mpi"
    return LaunchLine(
        "horovodrun" if program == "horovodrun" else "mpirun",
        variables,
        _script(words[at:]),
        frozenset([library]),
        ranks=ranks,
        slots=slots,
        prefix=prefix,
        may_share=may_share,
    )


def _listed(entries: Iterable[str]) -> dict[str, int]:
    """`h0:2,h1`: a host without a number has one slot, and one that is named again has one more."""
    found: dict[str, int] = {}
    for entry in entries:
        host, mark, count = entry.strip().rpartition(":")
        name, number = (host, int(count)) if mark and count.isdigit() else (entry.strip(), 1)
        if name:
            found[name] = found.get(name, 0) + number
    return found


def _in_file(path: str) -> dict[str, int]:
    """`h0 slots=2` of Open MPI and Horovod, `h0:2` of MPICH; nothing where the file is not here."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[str, int] = {}
    for line in lines:
        words = line.partition("#")[0].split()
        if words:
            told = re.search(r"slots\s*=\s*(\d+)", line)
            for host, count in _listed([words[0]]).items():
                found[host] = found.get(host, 0) + (int(told[1]) if told else count)
    return found


def _script(words: Sequence[str]) -> tuple[str, ...]:
    """The first word that is a Python file."""
    return tuple(word for word in words if word.endswith(".py"))[:1]
