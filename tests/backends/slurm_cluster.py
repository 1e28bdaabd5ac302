"""A real Slurm on this machine: a controller and several node daemons, all our own, ended by id."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sbatch": "slurm-wlm", "munged": "munge"}
_CONFIGURATION = """
ClusterName=phalanx
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
MpiDefault=none
ReturnToService=2
KillWait=5
MinJobAge=300
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def missing() -> str:
    """What to install before this can run; nothing if all is here."""
    if os.getuid() != 0:
        return "needs root for Slurm's daemons"
    absent = {package for program, package in PROGRAMS.items() if _program(program) is None}
    return f"apt-get install --no-install-recommends {' '.join(sorted(absent))}" if absent else ""


class Slurm:
    """Slurm's commands, pointed at a cluster by `environment`."""

    def __init__(self, folder: Path) -> None:
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}

    def queue(self, below: Path | None = None) -> list[str]:
        """Jobs that are not over; of those that were queued from below a folder."""
        lines = [line.split(maxsplit=2) for line in self.call("squeue", "-h", "-o", "%i %T %Z").splitlines()]
        return [f"{number} {state}" for number, state, home in lines if below is None or home.startswith(str(below))]

    def call(self, *command: str) -> str:
        """One of Slurm's commands."""
        done = subprocess.run(
            command, env=os.environ | self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout


class SlurmCluster(Slurm):
    """Up when made."""

    def __init__(self, folder: Path, nodes: int = 3) -> None:
        super().__init__(folder)
        self._folder = folder
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        ports = _free_ports(nodes + 1)
        host = socket.gethostname().split(".")[0]
        for name in ("state", *(f"spool-{node}" for node in self.nodes)):
            (folder / name).mkdir()
        lines = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={os.cpu_count()} State=UNKNOWN"
            for node, port in zip(self.nodes, ports[1:], strict=True)
        ]
        text = _CONFIGURATION.format(host=host, ports=ports, folder=folder, user="root", nodes="\n".join(lines))
        (folder / "slurm.conf").write_text(text)
        (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        folder = self._folder
        files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        self._run("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files)
        _wait_for((folder / "munge.socket").exists, "munged's socket", folder / "munge.log")
        self._run("slurmctld", "-D")
        for node in self.nodes:
            self.start_node(node)
        _wait_for(lambda: self.idle() == set(self.nodes), "idle nodes", folder / "slurmctld.log")

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self._run("slurmd", "-D", "-N", node, name=node)

    def idle(self) -> set[str]:
        """Nodes that wait for work."""
        told = self.call("sinfo", "-h", "-N", "-o", "%N %t")
        return {line.split()[0] for line in told.splitlines() if line.split()[1] == "idle"}

    def _run(self, program: str, *arguments: str, name: str = "") -> None:
        log = (self._folder / f"{name or program}.out").open("wb")
        self._daemons[name or program] = subprocess.Popen(
            [_program(program) or program, *arguments], env=os.environ | self.environment, stdout=log, stderr=log,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        log.close()

    def close(self) -> None:
        """End all jobs, then all daemons, in the order that leaves nothing behind."""
        for line in self.queue() if "slurmctld" in self._daemons else ():
            self.call("scancel", "--signal=KILL", "--full", line.split()[0])
        for name in [*self.nodes, "slurmctld", "munged"]:
            daemon = self._daemons.pop(name, None)
            if daemon is None:
                continue
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return found


def _wait_for(is_so: object, what: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if is_so():  # type: ignore[operator]
            return
        time.sleep(0.2)
    told = log.read_text(errors="replace")[-2000:] if log.exists() else "no log"
    raise RuntimeError(f"Slurm: no {what} within 60 s: {told}")
