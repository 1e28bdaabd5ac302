"""What a launch command tells of a job: `torchrun --nnodes 2 … train.py` as the variables that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

_TORCHRUN = ("torch.distributed.run", "torch.distributed.launch", "torch.distributed.elastic")
# Options of torchrun that take no value; all others take one.
_FLAGS = frozenset(["standalone", "no-python", "run-path", "m", "module", "use-env", "virtual-local-rank"])
_KEPT = {
    "nnodes": "PET_NNODES",
    "node-rank": "PET_NODE_RANK",
    "nproc-per-node": "PET_NPROC_PER_NODE",
    "rdzv-id": "PET_RDZV_ID",
    "rdzv-endpoint": "PET_RDZV_ENDPOINT",
    "rdzv-backend": "PET_RDZV_BACKEND",
}
_DEFAULT_STORE = "29500"
_DEFAULT_RENDEZVOUS = "29400"


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """What could be read from a command."""

    variables: dict[str, str] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()
    libraries: frozenset[str] = frozenset()


def read_launch_line(command: Sequence[str]) -> LaunchLine:
    """Understands torchrun in its spellings, mpirun, horovodrun and plain Python; of others only the script."""
    if not command:
        return LaunchLine()
    program = PurePath(command[0]).name
    rest = list(command[1:])
    if program.startswith("python") and len(rest) > 1 and rest[0] == "-m" and rest[1].startswith(_TORCHRUN):
        return _torchrun(rest[2:])
    if program in ("torchrun", "torchrun.py"):
        return _torchrun(rest)
    libraries = frozenset({"mpi": "mpi", "hor": "horovod"}.get(program[:3], "").split())
    if program.startswith("mpi") or program in ("prterun", "orterun"):
        libraries = frozenset(["mpi"])
    return LaunchLine({}, _script(rest), libraries)


def _torchrun(words: list[str]) -> LaunchLine:
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
    variables = {_KEPT[name]: value for name, value in options.items() if name in _KEPT}
    address, port = options.get("master-addr", ""), options.get("master-port", "")
    endpoint = options.get("rdzv-endpoint", "")
    if not address and endpoint and not options.get("rdzv-backend", "").startswith("etcd"):
        address, _, port = endpoint.rpartition(":") if endpoint.count(":") == 1 else (endpoint, "", "")
        port = port or _DEFAULT_RENDEZVOUS
    if address:
        variables |= {"MASTER_ADDR": address, "MASTER_PORT": port or _DEFAULT_STORE}
    is_module = "m" in options or "module" in options
    return LaunchLine(variables, () if is_module else _script(words[at:]), frozenset())


def _script(words: Sequence[str]) -> tuple[str, ...]:
    """The first word that is a Python file."""
    return tuple(word for word in words if word.endswith(".py"))[:1]
