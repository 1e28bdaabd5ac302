"""What a replay concludes: each fault is injected into a real job, and told apart from the others."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from .jobs import record, replay

pytestmark = [
    pytest.mark.job,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
    ),
]


def prepare(folder: Path) -> Path:
    import numpy

    shutil.copyfile(Path(__file__).with_name("training.py"), folder / "train.py")
    numpy.save(folder / "data.npy", numpy.random.default_rng(1).standard_normal((64, 16)).astype("float32"))
    return folder


def line_of(text: str) -> str:
    source = Path(__file__).with_name("training.py").read_text().splitlines()
    return f"train.py:{next(number for number, line in enumerate(source, 1) if text in line)}"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = prepare(tmp_path_factory.mktemp("healthy"))
    done = record(folder, "full", 2, API_TOKEN="sk-abcdefghijklmnopqrstuvwxyz")
    assert done.status == 0, done.err
    return folder


def copied(healthy: Path, folder: Path) -> Path:
    shutil.copytree(healthy, folder, dirs_exist_ok=True)
    return folder


def test_a_healthy_rank_repeats(healthy: Path) -> None:
    found = replay(healthy, "bundle", "--rank", "1", "-f", "json").json()
    assert (found["verdict"], found["fidelity"]) == ("same", "bitwise")
    assert found["replays"][0]["compared"] == found["replays"][0]["recorded"] > 10


def test_a_flipped_bit_is_transient_and_its_parameter_is_named(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    (folder / "flip").touch()
    assert record(folder, "full", 2).status == 0
    (folder / "flip").unlink()
    found = replay(folder, "bundle", "--rank", "1", "-f", "json").json()
    assert found["verdict"] == "transient", found
    first = found["first_difference"]
    assert (first["step"], first["op"], first["line"]) == (4, "allreduce_", line_of("loss.backward()"))
    assert "3.weight" in first["names"]
    assert "0.weight" not in first["names"]
    assert "one call of step 4" in found["summary"]
    innocent = replay(folder, "bundle", "--rank", "0", "-f", "json").json()
    assert innocent["verdict"] == "same", innocent  # what it received was recorded, flip and all


def test_an_unseeded_shuffle_is_chance(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    assert record(folder, "full", 2, "unseeded", "4").status == 0
    found = replay(folder, "bundle", "--rank", "1", "-f", "json").json()
    assert found["verdict"] == "non-deterministic", found
    assert found["first_difference"]["step"] == 0


def test_a_changed_sample_is_different_data(healthy: Path, tmp_path: Path) -> None:
    import numpy

    folder = copied(healthy, tmp_path)
    data = numpy.load(folder / "data.npy")
    data[11, 3] += 1
    numpy.save(folder / "data.npy", data)
    found = replay(folder, "bundle", "--rank", "1", "-f", "json").json()
    assert found["verdict"] == "different-data", found
    assert "batch" in found["summary"]


def test_a_changed_line_is_different_software_and_is_shown(healthy: Path, tmp_path: Path) -> None:
    folder = copied(healthy, tmp_path)
    script = folder / "train.py"
    script.write_text(script.read_text().replace("lr=0.01", "lr=0.02"))
    found = replay(folder, "bundle", "--rank", "1", "-f", "json").json()
    assert found["verdict"] == "different-software", found
    assert found["changes"][0]["what"] == "train.py"
    assert f"at {line_of('lr=0.01').replace('train.py:', 'line ')}:" in found["changes"][0]["text"]
    assert "lr=0.02" in found["changes"][0]["text"]


def test_a_fault_of_the_software_repeats(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    assert record(folder, "full", 2, "raises").status == 1
    found = replay(folder, "bundle", "--rank", "1", "-f", "json").json()
    assert found["verdict"] == "repeats", found
    assert "ValueError: bad sample near" in found["summary"]
    victim = replay(folder, "bundle", "--rank", "0", "-f", "json").json()
    assert victim["verdict"] == "same", victim
    assert "never completed" in victim["summary"]


def test_other_arguments_are_named(healthy: Path) -> None:
    found = replay(healthy, "bundle", "--rank", "1", "-f", "json", "--", "healthy", "3").json()
    assert found["verdict"] == "same"
    assert [change["what"] for change in found["changes"]] == ["arguments"]
    assert found["replays"][0]["step"] == 3


def test_an_end_can_be_asked_for(healthy: Path) -> None:
    found = replay(healthy, "bundle", "--rank", "0", "--to", "4", "-f", "json").json()
    assert found["replays"][0]["step"] == 5
    assert "as asked" in found["summary"]


def test_no_secret_is_in_the_bundle(healthy: Path) -> None:
    files = [path for path in (healthy / "bundle").rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if b"abcdefghijklmnopqrstuvwxyz" in path.read_bytes()] == []


def test_the_reproducer_runs_without_us(healthy: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    target = tmp_path / "repro"
    done = replay(healthy, "bundle", "--rank", "1", "--export", str(target), "--include", "data.npy")
    assert done.status == 0, done.err
    assert " MB" in done.out
    shutil.move(str(target), tmp_path / "elsewhere")
    again = subprocess.run(
        [sys.executable, "repro.py"],
        cwd=tmp_path / "elsewhere",
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert "0 differences" in again.stdout
    assert "Left out" in (tmp_path / "elsewhere" / "README.md").read_text()


def test_json_is_alone_on_standard_output(healthy: Path) -> None:
    done = replay(healthy, "bundle", "--rank", "0", "--to", "0", "-f", "json")
    assert json.loads(done.out)["schema"] == "phalanx.replay/1"
