"""Beds for tests: what they need, and a whole check of one."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from functools import partial

import pytest

from phalanx.lab import Bed
from phalanx.lab.host import Host
from phalanx.model import Report
from phalanx.preflight.check import examine
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.targets import by_command, start_all

_PROGRAMS = ("ip", "nft", "nsenter", "setpriv", "unshare")
_FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
needs_beds = pytest.mark.skipif(
    os.geteuid() != 0 or not all(shutil.which(name, path=_FOLDERS) for name in _PROGRAMS),
    reason="needs root and namespaces: apt-get install iproute2 nftables util-linux",
)


def each(host: Host, **variables: str) -> str:
    """A value for --each that sets these variables of the job, and no others."""
    return shlex.join([*host.entry, "--", "env", *(f"{name}={value}" for name, value in variables.items())])


def check_bed(bed: Bed, *, network: bool = True, options: CheckOptions | None = None) -> tuple[Report, float]:
    """What `phalanx check` says of a bed, and how long it took, the start of the agents included."""
    began = time.monotonic()
    starters = [partial(by_command, host.name, shlex.join(host.prefix), sys.executable, 30.0) for host in bed]
    targets, failures = start_all(starters)
    try:
        report = examine(targets, options or CheckOptions(network=network), failures)
    finally:
        for target in targets:
            target.close()
    return report, time.monotonic() - began
