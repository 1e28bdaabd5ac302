"""The plugin, as a user's own test-suite uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = """
import pytest


def add(value):
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    found = torch.tensor(float(dist.get_rank() + value))
    dist.all_reduce(found)
    dist.destroy_process_group()
    return found.item()


def test_results(phalanx_ranks):
    assert phalanx_ranks(2)(add, 1) == [3.0, 3.0]


@pytest.mark.phalanx_ranks(2)
def test_whole(tmp_path):
    import torch.distributed as dist
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        raise KeyError("labels of rank one")
    dist.barrier()


@pytest.mark.phalanx_ranks
def test_without_a_number():
    pass
"""


def test_a_suite_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "test_training.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "test_training.py"]
    plugin = ["-p", "phalanx.pytest_plugin"] if not _is_installed() else []
    done = subprocess.run([*command, *plugin], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 passed" in done.stdout, done.stdout
    assert "KeyError: 'labels of rank one'" in done.stdout, done.stdout
    assert "phalanx: Rank 1 raised KeyError" in done.stdout, "the verdict is a note below the culprit's traceback"
    failure = done.stdout.partition("= FAILURES =")[2].partition("Captured std")[0]
    assert "KeyError" in failure
    assert "Connection closed by peer" not in failure, "no victim's traceback"
    assert "needs the number of ranks" in done.stdout


def _is_installed() -> bool:
    """Whether the entry point is known: not where the source is only on the path."""
    from importlib.metadata import entry_points

    return any(point.value == "phalanx.pytest_plugin" for point in entry_points(group="pytest11"))
