"""A real Ray cluster of one node: its actor answers as an agent does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import ray
ray.init("local", num_cpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
from phalanx.check.check import examine
from phalanx.check.meeting.on_ray import parties_on_ray
from phalanx.check.options import CheckOptions
parties = parties_on_ray("auto")
report = examine(parties, CheckOptions(network=False))
print(len(parties), report.read, [finding.summary for finding in report.findings])
ray.shutdown()
"""


def test_a_node_of_a_cluster_is_a_party() -> None:
    pytest.importorskip("ray", reason="pip install ray")
    variables = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    variables |= {"RAY_raylet_start_wait_time_s": "120"}  # on a busy machine its own patience is too short
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=variables, check=False)
    assert done.stdout.startswith("1 ("), done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("[]")
