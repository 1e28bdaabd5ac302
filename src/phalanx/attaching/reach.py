"""How other machines are reached: each by a command, to which the command that is run there is appended."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from phalanx.attaching.jobs import AttachError


@dataclass(frozen=True, slots=True)
class Reach:
    """A machine, or several that one command reaches, and that command."""

    name: str
    command: tuple[str, ...]


def module_command(python: str | None, module: str, *words: str) -> list[str]:
    """What is run on the other machines; Phalanx must be installed for that interpreter there."""
    return [python or sys.executable, "-m", module, *words]


def by_ssh(hosts: Sequence[str], command: Sequence[str]) -> list[Reach]:
    """One ssh a host; the user's own configuration, aliases and keys."""
    options = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
    return [Reach(host, ("ssh", *options, "--", host, shlex.join(command))) for host in hosts]


def by_slurm(job: str, command: Sequence[str]) -> list[Reach]:
    """One step on each node of the job, beside its own. One for all nodes would mix their long lines."""
    names = _said("squeue", "-h", "-j", job, "-o", "%N").strip()
    if not names:
        raise AttachError(f"Slurm knows no running job {job}")
    nodes = _said("scontrol", "show", "hostnames", names).split()
    options = (f"--jobid={job}", "--overlap", "--nodes=1", "--ntasks=1", "--mem=0")
    return [Reach(node, ("srun", *options, f"--nodelist={node}", *command)) for node in nodes]


def by_kubectl(selector: str, command: Sequence[str]) -> list[Reach]:
    """Every running pod of a label selector."""
    names = _said("kubectl", "get", "pods", "-l", selector, "--field-selector=status.phase=Running", "-o", "name")
    pods = names.split()
    if not pods:
        raise AttachError(f"no running pod has the labels {selector}")
    return [Reach(pod, ("kubectl", "exec", "-i", pod, "--", *command)) for pod in pods]


def by_ray(job: str, command: Sequence[str]) -> list[Reach]:
    """Every node of the Ray cluster of this machine, or of RAY_ADDRESS; one command reaches all of them."""
    address = os.environ.get("RAY_ADDRESS", "auto")
    words = (sys.executable, "-m", "phalanx.attaching.ray_nodes", address, job, *command)
    return [Reach(f"the nodes of Ray job {job}", words)]


def by_template(template: str, hosts: Sequence[str], command: Sequence[str]) -> list[Reach]:
    """The user's own command, `{}` being the host; the command is appended."""
    words = shlex.split(template)
    if not any("{}" in word for word in words):
        raise AttachError("--each needs {} where the host's name goes, for example --each 'ssh {}'")
    return [Reach(host, (*(word.replace("{}", host) for word in words), *command)) for host in hosts]


def names_in(text: str) -> list[str]:
    """`a,b,user@c`. Raises AttachError if there is none."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise AttachError("--hosts names nobody")
    return names


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AttachError(f"{command[0]}: {error}") from None
    if done.returncode:
        raise AttachError(f"{command[0]}: {done.stderr.strip()[:300] or f'status {done.returncode}'}")
    return done.stdout
