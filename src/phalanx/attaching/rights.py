"""What to grant where the kernel forbids looking into the ranks, by what this machine says of itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))
_SYS_PTRACE = 19  # the capability's number


def what_to_grant(
    scope: int | None = None, variables: Mapping[str, str] | None = None, in_container: bool | None = None
) -> str:
    """One sentence with the line to paste. Arguments are for tests: what is not given is looked up."""
    scope = _scope() if scope is None else scope
    variables = os.environ if variables is None else variables
    if in_container is None:
        in_container = any(path.exists() for path in _CONTAINERS)
    if scope >= 3:
        return "kernel.yama.ptrace_scope is 3: until the next boot nobody may look into processes. Start the job with PHALANX=1 to be told from inside"
    if "KUBERNETES_SERVICE_HOST" in variables:
        return (
            'the pod lacks a capability: add `securityContext: {capabilities: {add: ["SYS_PTRACE"]}}` to the container, or use '
            "`kubectl debug --profile=sysadmin --target=CONTAINER`; without it start the job with PHALANX=1"
        )
    if in_container:
        return "the container lacks a capability: start it with `--cap-add=SYS_PTRACE`, or start the job with PHALANX=1"
    if scope in (1, 2):
        only = "children of the looking process" if scope == 1 else "root"
        return f"kernel.yama.ptrace_scope is {scope}: only {only} may be looked into. Run it as root (sudo), or `sysctl kernel.yama.ptrace_scope=0`"
    if not _has_capability():
        return "the job's processes have capabilities that this one lacks: run it as root, or with CAP_SYS_PTRACE"
    return "run it as the user who runs the job, or as root"


def _scope() -> int:
    try:
        return int(_YAMA.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0  # a kernel without Yama


def _has_capability() -> bool:
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _SYS_PTRACE & 1)
    return False
