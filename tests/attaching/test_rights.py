"""Where looking is forbidden: what to grant is said, and what /proc alone tells is told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.attaching.investigation import investigate
from phalanx.attaching.rights import what_to_grant
from phalanx.attaching.state import State, describe
from phalanx.attaching.target import target_here

from ..embedded.jobs import prepared
from ..needs import needs_torch
from .jobs import SOURCE, attach, by_hand, wait_until_ready

SLEEP = "import time; time.sleep(60)"
needs_setpriv = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv (util-linux)"
)
WITH_SOURCE = {**os.environ, "PYTHONPATH": str(SOURCE)}
WITHOUT = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")


@pytest.mark.parametrize(
    ("scope", "variables", "in_container", "said"),
    [
        (3, {}, False, "until the next boot"),
        (1, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, True, 'add: ["SYS_PTRACE"]'),
        (0, {}, True, "--cap-add=SYS_PTRACE"),
        (1, {}, False, "sysctl kernel.yama.ptrace_scope=0"),
        (2, {}, False, "only root may be looked into"),
        (0, {}, False, "run it as"),
    ],
)
def test_what_to_grant(scope: int, variables: dict[str, str], in_container: bool, said: str) -> None:
    assert said in what_to_grant(scope, variables, in_container)


def test_without_stacks_it_goes_on_with_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """py-spy's own words where ptrace is forbidden."""
    refusing = tmp_path / "py-spy"
    refusing.write_text(
        "#!/bin/sh\necho 'Error: Permission Denied: Try running again with elevated permissions by going \"sudo env\"' >&2\nexit 1\n"
    )
    refusing.chmod(0o755)
    monkeypatch.setattr("phalanx.run.watch.stacks.find_py_spy", lambda: str(refusing))
    variables = {"WORLD_SIZE": "2", "MASTER_PORT": "61020", "LOCAL_WORLD_SIZE": "2"}
    burn = "while True: pass"
    ranks = [
        subprocess.Popen([sys.executable, "-c", code], env={**os.environ, **variables, "RANK": str(rank)})
        for rank, code in enumerate((SLEEP, burn))
    ]
    try:
        target = target_here(ranks[0].pid, lambda jobs: jobs[0])
        seen = investigate(target, lambda text: None)
    finally:
        for one in ranks:
            one.kill()
            one.wait()
    said = describe(seen.motion, seen.found)
    assert seen.found.state is State.UNSEEN
    assert what_to_grant() in said
    assert "rank 1 works (" in said
    assert "rank 0 does nothing" in said


@needs_setpriv
def test_what_root_in_a_container_without_the_capability_is_told() -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP], env={**os.environ, "RANK": "0", "WORLD_SIZE": "1"}) as rank:
        try:
            report, status, err = attach(str(rank.pid), through=WITHOUT)
        finally:
            rank.kill()
    assert status == 2
    assert "SYS_PTRACE" in f"{report} {err}"


def test_a_filter_that_forbids_ptrace_alone_does_not_keep_from_looking() -> None:
    """Stacks are then taken without pausing the process."""
    with subprocess.Popen([sys.executable, "-c", SLEEP]) as rank:
        code = f"import time; from phalanx.run.watch.stacks import take_stacks; time.sleep(1); print(take_stacks([{rank.pid}]))"
        words = [sys.executable, str(Path(__file__).with_name("forbidding.py")), sys.executable, "-c", code]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=WITH_SOURCE)
        rank.kill()
    assert "error=''" in done.stdout, done.stderr
    assert "<module>" in done.stdout


@needs_setpriv
@needs_torch
@pytest.mark.job
@pytest.mark.timeout(300)
def test_ranks_that_were_started_with_the_variable_tell_themselves(tmp_path: Path) -> None:
    """py-spy may not look into them: their stacks come over their sockets."""
    inside = {name: value for name, value in prepared(tmp_path).items() if name in ("PYTHONPATH", "PHALANX")}
    with by_hand(tmp_path, "sleep", more={**inside, "PHALANX_STALL_AFTER": "600"}) as pids:
        wait_until_ready(tmp_path, range(3))
        report, status, err = attach(str(pids[0]), through=WITHOUT)
        assert status == 1, err
        assert report["verdict"]["culprit_ranks"] == [1]
        assert "train.py:20" in str(report["verdict"])
