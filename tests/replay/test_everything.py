"""Every kind of parallelism and of collective, recorded with 4 ranks, and one rank again, alone, bit for bit."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from .jobs import Done, record, replay

pytestmark = [
    pytest.mark.job,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]
KINDS = "calls,ddp,fsdp2,hsdp,tensor_parallel,fsdp2_and_tensor_parallel,fsdp1,compiled,plain"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    folder = tmp_path_factory.mktemp("everything")
    shutil.copyfile(Path(__file__).with_name("everything.py"), folder / "train.py")
    done = record(folder, "full", 4, KINDS, "5")
    assert done.status == 0, done.err
    assert "recording stopped" not in done.err
    return folder, done


def test_a_rank_repeats_alone(job: tuple[Path, Done]) -> None:
    folder, done = job
    again = replay(folder, "bundle", "--rank", "2")
    assert again.status == 0, again.out + again.err
    assert "[same, bitwise]" in again.out
    said = (done.rank(2) / "output.log").read_text()
    hashes = [line for line in said.splitlines() if ": " in line and line.split(":")[0] in KINDS]
    assert len(hashes) == 9
    for line in hashes:  # what the rank printed of its parameters and results, it prints again
        assert line in again.out.splitlines(), again.out


def test_the_recording_is_readable_by_others(job: tuple[Path, Done]) -> None:
    safetensors = pytest.importorskip("safetensors", reason="pip install safetensors")
    _, done = job
    files = list(done.bundle.glob("attempt0/rank*/record/results-*.safetensors"))
    assert files
    for file in files:
        with safetensors.safe_open(str(file), "numpy") as opened:
            assert list(opened.keys())


def test_members_keep_their_share_of_what_all_receive(job: tuple[Path, Done]) -> None:
    import json

    _, done = job
    shares = []
    for rank in range(4):
        lines = [json.loads(line) for line in (done.rank(rank) / "record" / "calls.jsonl").read_text().splitlines()]
        first = next(line for line in lines if line["k"] == "done" and line["n"] == 0)
        shares.append(first["share"])
    assert shares == [[0, 3000], [3000, 6000], [6000, 9000], [9000, 12000]]
