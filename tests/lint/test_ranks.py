"""Which conditions differ between ranks, and which only ask whether the job is distributed."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.lint import lint_paths

HEAD = """\
import argparse
import json
import os

import torch.distributed as dist

args = argparse.ArgumentParser().parse_args()
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def is_main():
    return dist.get_rank() == 0


def setup():
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


own, count = setup()
"""


@pytest.mark.parametrize(
    ("test", "differs"),
    [
        ("rank == 0", True),
        ("not rank", True),
        ("is_main()", True),
        ("not is_main()", True),
        ("own == 0", True),
        ("count > 1", False),
        ("world > 1", False),
        ("args.local_rank in (-1, 0)", True),
        ("args.local_rank == -1", False),
        ("args.local_rank != -1", False),
        ("rank is None", False),
        ("int(os.environ['RANK']) == 0 and world > 1", True),
        ("os.environ.get('SLURM_PROCID') == '0'", True),
        ("json.loads(os.environ['TF_CONFIG'])['task']['index'] == 0", True),
        ("args.verbose", False),
    ],
)
def test_a_barrier_under_a_condition(test: str, differs: bool, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"{HEAD}if {test}:\n    dist.barrier()\ndist.destroy_process_group()\n")
    assert bool(lint_paths([str(path)]).report.findings) is differs


@pytest.mark.parametrize(
    "body",
    [
        "if rank != 0:\n    dist.barrier()\nprint('first')\nif rank == 0:\n    dist.barrier()\n",
        "if rank == 0:\n    print('first')\n    dist.barrier()\nelse:\n    dist.barrier()\n",
        "if rank == 0:\n    raise ValueError\ndist.barrier()\n",
        "group = dist.new_group([0, 1])\nif rank < 2:\n    dist.barrier(group)\n",
        "if rank == 0:\n    dist.barrier()  # phalanx: ignore\n",
    ],
)
def test_healthy_forms_are_silent(body: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"{HEAD}{body}dist.destroy_process_group()\n")
    report = lint_paths([str(path)]).report
    assert not report.findings, [finding.title for finding in report.findings]
