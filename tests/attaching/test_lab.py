"""A job over hosts that are network namespaces: healthy, then its network loses the path between two of them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from phalanx.lab import Bed
from tests.lab.beds import needs_beds

from ..needs import needs_torch
from .jobs import TRAIN, attach, wait_until_ready

pytestmark = [pytest.mark.job, needs_torch, needs_beds, pytest.mark.timeout(300)]


@contextmanager
def job_on_hosts(folder: Path, count: int, fault: str) -> Iterator[tuple[Bed, list[str]]]:
    """One rank a host, and the options that reach the hosts."""
    (folder / "train.py").write_text(TRAIN)
    with Bed(count) as bed:
        start = f"cd {folder} && exec {sys.executable} train.py {fault}"  # entering a host sets the folder
        words = ["OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=eth0", "sh", "-c", start]
        running = [host.start(words, stdout=(folder / f"out{host.number}").open("wb"), stderr=-2) for host in bed]
        entries = "\n".join(f'{host.name}) exec {shlex.join(host.entry)} -- "$@" ;;' for host in bed)
        (folder / "on.sh").write_text(f"host=$1; shift\ncase $host in\n{entries}\nesac\n")
        try:
            wait_until_ready(folder, range(count))
            names = ",".join(host.name for host in bed)
            yield bed, ["--hosts", names, "--each", f"sh {folder}/on.sh {{}}"]
        finally:
            for one in running:
                one.kill()
                one.wait(10)


def stand_in_for_kubectl(folder: Path) -> str:
    """A folder with a kubectl that lists three pods and runs what `exec` is asked for in the namespaces of the host of that name."""
    program = folder / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        'if [ "$1 $2 $3 $4" = "get pods -l app=train" ]; then echo pod/h0; echo pod/h1; echo pod/h2; exit; fi\n'
        f'if [ "$1 $2 $4" = "exec -i --" ]; then pod=${{3#pod/}}; shift 4; exec sh {folder}/on.sh "$pod" "$@"; fi\n'
        'echo "error: no such call: $*" >&2; exit 1\n'
    )
    program.chmod(0o755)
    return str(program.parent)


def test_a_lost_path_between_two_hosts_accuses_no_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its healthy twin is looked at first, through what kubectl does with pods."""
    with job_on_hosts(tmp_path, 3, "healthy") as (bed, options):
        monkeypatch.setenv("PATH", f"{stand_in_for_kubectl(tmp_path)}:{os.environ['PATH']}")
        report, status, err = attach("--kubectl", "app=train", "--remote-python", sys.executable)
        assert (status, report["verdict"]) == (0, None), f"{err} {report}"
        assert "ranks 0, 1, 2 of 3 on h0, h1, h2" in err
        assert "error: no such call" in attach("--kubectl", "app=other")[2]
        bed.switch_filter('iifname "p1" oifname "p2" drop', 'iifname "p2" oifname "p1" drop')
        report, status, err = attach(*options)
        assert status == 1, f"{err} {report}"
        assert report["verdict"]["culprit_ranks"] == []
        assert "not acknowledged" in str(report["verdict"]), report["verdict"]
        assert report["verdict"]["rule"] == "HNG084"  # a broken path, with both its ends
        assert "rank 1" in str(report["verdict"])
        assert "rank 2" in str(report["verdict"])
