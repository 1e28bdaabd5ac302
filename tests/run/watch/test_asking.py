"""A rank answers over its socket what py-spy may not see: only its own user, in py-spy's form, while its main thread hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import phalanx
from phalanx.run.watch import stacks
from phalanx.run.watch.asking import ask_inside
from phalanx.run.watch.heartbeat import FOLDER

JOB = """
import os, time
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://{store}", rank=0, world_size=1)
dist.barrier()

def train(step, name):
    token = "x" * 500
    print("ready", flush=True)
    time.sleep(600)

train(17, "resnet")
"""


@pytest.fixture(scope="module")
def rank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A rank of `phalanx run` that sleeps in its own function."""
    folder = tmp_path_factory.mktemp("asked")
    (folder / "job.py").write_text(JOB.format(store=folder / "store"))
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "PHALANX_INSIDE": f"0:1:{folder / 'heartbeat'}"}
    process = subprocess.Popen(
        [sys.executable, str(folder / "job.py")], env=environment, stdout=subprocess.PIPE, text=True, cwd=folder
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_stacks_with_short_variables(rank: int) -> None:
    answer = ask_inside(rank)
    assert answer is not None
    assert (answer["pid"], answer["rank"], answer["size"]) == (rank, 0, 1)
    taken = stacks.parse_json(rank, json.dumps(answer["threads"]))
    assert taken.main is not None
    assert taken.main.frames[-1].function == "train"
    assert taken.main.values[-1] == {"step": "17", "name": "'resnet'"}  # the long one stays inside
    assert not any(thread.name.startswith("phalanx-") for thread in taken.threads)


def test_collectives_and_who(rank: int) -> None:
    answer = ask_inside(rank, "collectives")
    assert answer is not None
    assert "entries" in answer["collectives"][0]
    assert "threads" not in (ask_inside(rank, "who") or {})
    assert "stacks" in str((ask_inside(rank, "nonsense") or {})["error"])


def test_stacks_are_taken_so_where_py_spy_may_not_look(
    rank: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refuses = tmp_path / "py-spy"
    refuses.write_text("#!/bin/sh\necho 'Error: Permission Denied' >&2\nexit 1\n")
    refuses.chmod(0o755)
    monkeypatch.setattr(stacks, "find_py_spy", lambda: str(refuses))
    taken = stacks.take_stacks([rank, os.getpid()])
    assert taken[rank].main is not None
    assert taken[rank].main.frames[-1].function == "train"
    assert taken[os.getpid()].error == stacks.GRANT  # who has no watch inside cannot be asked


def test_another_user_is_not_answered(rank: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    code = f"import os; os.setuid(65534)\nfrom phalanx.run.watch.asking import ask_inside\nprint(ask_inside({rank}))"
    source = str(Path(phalanx.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", "import phalanx.run.watch.asking\n" + code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.stdout == "None\n", done.stderr
