"""The supervisor is killed at random moments, 200 times: nobody is left, and every bundle is readable."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from phalanx.sources import find_inputs
from phalanx.sources.bundle import is_bundle, read_manifest

from .jobs import SOURCE, processes_of, wait_for

# One interpreter starts the supervisors by fork, so that 200 of them cost little: the imports are done once.
FORKER = """\
import os, sys, time
from pathlib import Path
from phalanx.run.job import Job
from phalanx.run.plan import make_plan
from phalanx.run.spec import JobSpec
from phalanx.run.screen import Screen

spec = JobSpec(command=("sh", "-c", "while :; do echo line; echo other >&2; sleep 0.01; done"), size=2, is_program=True, max_restarts=3, inside=False)
plan = make_plan(spec, dict(os.environ), Path.cwd())
for line in sys.stdin:
    folder = Path(line.strip())
    child = os.fork()
    if child == 0:
        folder.mkdir()
        os.chdir(folder.parent)
        Job(plan, folder, Screen()).run()
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


@pytest.mark.parametrize("part", range(4))
def test_killed_fifty_times(tmp_path: Path, part: int) -> None:
    chance = random.Random(part)
    variables = {"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin", "TEST_JOB": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", FORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=variables,
        cwd=tmp_path,
    ) as forker:
        assert forker.stdin is not None
        assert forker.stdout is not None
        bundles = [tmp_path / f"bundle{number}" for number in range(50)]
        for number, bundle in enumerate(bundles):
            forker.stdin.write(f"{bundle}\n")
            forker.stdin.flush()
            child = int(_next_number(forker))
            if number % 2:  # the others may be killed before there is anything
                assert wait_for(lambda bundle=bundle: any(bundle.glob("attempt0/rank1/output.log")))
            time.sleep(chance.expovariate(1 / 0.15))
            subprocess.run(["kill", f"-{int(signal.SIGKILL)}", str(child)], check=True)
            _until_gone(forker)
        forker.stdin.close()
    assert wait_for(lambda: processes_of(tmp_path) == [], 60), [one.cmdline() for one in processes_of(tmp_path)]
    for bundle in bundles:
        _is_readable(bundle)
    assert sum((bundle / "manifest.json").exists() for bundle in bundles) >= 25
    assert any(log.stat().st_size for bundle in bundles for log in bundle.glob("attempt*/rank*/output.log"))


def _next_number(forker: subprocess.Popen[str]) -> str:
    """The supervisors print to the same stream: skip what is theirs."""
    assert forker.stdout is not None
    for line in forker.stdout:
        if line.strip().isdigit():
            return line
    raise AssertionError("the forker ended")


def _until_gone(forker: subprocess.Popen[str]) -> None:
    assert forker.stdout is not None
    for line in forker.stdout:
        if line.strip().endswith("gone"):
            return


def _is_readable(bundle: Path) -> None:
    """Whatever is there is whole: JSON that parses, logs of whole lines but for the last."""
    if not bundle.exists() or not (bundle / "manifest.json").exists():
        return  # killed before there was anything
    assert is_bundle(bundle)
    assert read_manifest(bundle)["size"] == 2
    inputs, unchecked = find_inputs([str(bundle)])
    assert [one.what for one in unchecked if "was cut off" not in one.what] == []
    assert unchecked, "a job that was killed with its launcher says so"
    for one in inputs:
        with one.open() as file:
            data = file.read()
        if one.name.endswith(".json"):
            json.loads(data)
        elif one.name.endswith("output.log"):
            assert set(data.split(b"\n")[:-1]) <= {b"line", b"other"}
