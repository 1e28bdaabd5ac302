"""MPI: `mpirun` starts one agent on each node. Open MPI and MPICH; the job itself need not know of MPI.

    train.on("mpi", hosts="a,b")      phalanx run -n 8 --on mpi://a,b train.py

How the hosts are reached is mpirun's affair (its own ssh, or the batch system whose allocation it runs in).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from phalanx.backends.backend import BackendError, Command, Plan, Reach, Request, Started, fewer_nodes, spread
from phalanx.backends.processes import ProcessJob

NAME = "mpi"
REACH = Reach.NETWORK
OPTIONS: Mapping[str, str] = {
    "hosts": 'names as mpirun takes them: "a,b"; without them this machine, or the allocation that mpirun finds',
    "hostfile": "mpirun's own file of hosts; say nodes=… beside it",
    "nodes": "how many agents share the workers; as many as there are hosts, or 1",
    "implementation": "openmpi (unless said) or mpich",
    "mpirun": "another program than mpirun",
    "arguments": 'more words for mpirun: "--mca oob_tcp_if_include eth0"',
}
ENDS_ALL = True  # Open MPI does; MPICH is asked not to
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# What mpirun tells its processes about themselves is not true of the ranks below them.
_OPEN_MPI_TELLS = (
    "OMPI_COMM_WORLD_,OMPI_UNIVERSE_SIZE,OMPI_NUM_APP_CTX,OMPI_APP_CTX_NUM_PROCS,OMPI_FIRST_RANKS,PMIX_,PRTE_"
)
_MPICH_TELLS = "PMI_,PMIX_,MPI_LOCALNRANKS,MPI_LOCALRANKID,HYDI_"


def plan(request: Request) -> Plan:
    """One mpirun, with one process on each node."""
    hosts = [host for host in request.option("hosts").split(",") if host]
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise BackendError(f"{host!r}: no name of a host")
    nodes = request.count("nodes", len(hosts) or 1)
    if hosts and nodes != len(hosts):
        raise BackendError(f"nodes={nodes}, but {len(hosts)} hosts are given: leave nodes out")
    layout = spread(request.workers, nodes)
    kinds = {"openmpi": _open_mpi, "mpich": _mpich}
    kind = request.option("implementation", "openmpi")
    if kind not in kinds:
        raise BackendError(f"implementation={kind}: give openmpi or mpich")
    argv = (request.option("mpirun", "mpirun"), *kinds[kind](request, hosts, nodes))
    purpose = f"one agent on each of {nodes} nodes" if nodes > 1 else "one agent"
    notes = ("the agents connect to this machine, which must be reachable from the nodes",)
    return Plan(layout, (Command(argv, purpose, request.environment),), nodes=tuple(hosts), notes=notes)


def without(options: Mapping[str, object], nodes: tuple[str, ...]) -> Mapping[str, object]:
    """The hosts that are left, or so many agents fewer."""
    hosts = [host for host in str(options.get("hosts") or "").split(",") if host]
    if hosts:
        return {**options, "hosts": ",".join(host for host in hosts if host not in nodes)}
    return fewer_nodes(options, len(nodes))


def start(plan: Plan, request: Request) -> Started:
    """As a child of this process."""
    return ProcessJob(plan, request.folder, names=("mpirun",), has_streams=False)


def _open_mpi(request: Request, hosts: list[str], nodes: int) -> list[str]:
    # Unbound: the agent's ranks inherit what it is bound to, and would all sit on its one core.
    words = ["-n", str(nodes), "--bind-to", "none"]
    if hosts or "hostfile" in request.options:
        words += ["--map-by", "ppr:1:node", *(["--host", ",".join(hosts)] if hosts else [])]
    else:
        words += ["--map-by", ":OVERSUBSCRIBE"]
    words += ["--hostfile", request.option("hostfile")] if "hostfile" in request.options else []
    for name in sorted(request.environment):
        words += ["-x", name]
    agent = [*request.agent, "--node-in", "OMPI_COMM_WORLD_RANK", "--forget", _OPEN_MPI_TELLS]
    return [*words, *shlex.split(request.option("arguments")), *agent]


def _mpich(request: Request, hosts: list[str], nodes: int) -> list[str]:
    # An agent that is lost must not take the others with it: they still have to tell what they saw.
    words = ["-disable-auto-cleanup", "-n", str(nodes)]
    words += ["-ppn", "1", "-hosts", ",".join(hosts)] if hosts else []
    words += ["-f", request.option("hostfile"), "-ppn", "1"] if "hostfile" in request.options else []
    words += ["-genvlist", ",".join(sorted(request.environment))] if request.environment else []
    agent = [*request.agent, "--node-in", "PMI_RANK", "--forget", _MPICH_TELLS]
    return [*words, *shlex.split(request.option("arguments")), *agent]
