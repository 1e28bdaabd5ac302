"""The compiled kernel records what the Python one does, bit for bit, and does the job no harm."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from phalanx.replay.inside.phalanx_record import compiled

from .jobs import Done, record, replay
from .test_divergence import prepare

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
)


@pytest.fixture(scope="module")
def kernel() -> str:
    """The compiled file for this PyTorch; compiling takes a while, once."""
    torch: Any = pytest.importorskip("torch", reason="needs PyTorch: pip install torch==2.13.0, or make test")
    facts = compiled.facts_of(torch)
    target = compiled.target_of(facts)
    if not target or compiled.compiler() is None:
        pytest.skip("needs a C++ compiler")
    if not Path(target).exists():
        assert compiled.make(facts, is_patient=False) == ""
    return target


def lines(done: Done, rank: int) -> list[dict[str, Any]]:
    """What was recorded of calls. Their results may come in any order."""
    text = (done.rank(rank) / "record" / "calls.jsonl").read_text()
    found = [line for line in map(json.loads, text.splitlines()) if line["k"] in ("group", "call", "done", "data")]
    return sorted(found, key=lambda line: (line["k"], line.get("n", 0)))


def kernel_of(done: Done) -> str:
    meta = json.loads((done.rank(0) / "record" / "meta.json").read_text())
    assert bool(meta.get("calls_compiled", 0)) == (meta["kernel"] == "compiled")
    return str(meta["kernel"])


@pytest.mark.job
@pytest.mark.timeout(900)
@needs_torch
@pytest.mark.parametrize("mode", ["light", "ring"])
def test_the_same_is_recorded_with_and_without_it(kernel: str, tmp_path: Path, mode: str) -> None:
    found: dict[str, list[Any]] = {}
    for name, variables in (("compiled", {}), ("Python", {"PHALANX_NO_CACHE": "1"})):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copyfile(Path(__file__).with_name("everything.py"), folder / "train.py")
        options = ("--record-steps", "2", "--checkpoint-every", "0")
        done = record(folder, mode, 2, "ddp,fsdp2,calls,plain", "6", options=options, **variables)
        assert done.status == 0, done.err
        assert "recording stopped" not in done.err
        assert kernel_of(done) == name
        found[name] = [lines(done, rank) for rank in range(2)]
    for quick, plain in zip(found["compiled"], found["Python"], strict=True):
        assert len(quick) > 100, "too few calls to be learnt"
        assert [one for one in quick if one["k"] != "data"] == [one for one in plain if one["k"] != "data"]
        # Where in the file a result of the ring lies is another matter.
        assert {one["n"]: (one["share"], one["of"]) for one in quick if one["k"] == "data"} == {
            one["n"]: (one["share"], one["of"]) for one in plain if one["k"] == "data"
        }


@pytest.mark.job
@pytest.mark.timeout(600)
@needs_torch
def test_a_ring_of_it_replays(kernel: str, tmp_path: Path) -> None:
    shutil.copyfile(Path(__file__).with_name("everything.py"), tmp_path / "train.py")
    done = record(tmp_path, "ring", 2, "fsdp2", "9", options=("--record-steps", "2"))
    assert done.status == 0, done.err
    assert kernel_of(done) == "compiled"
    again = replay(tmp_path, "bundle", "--rank", "1")
    assert "[same, bitwise]" in again.out, again.out + again.err


@pytest.mark.job
@pytest.mark.timeout(600)
@needs_torch
@pytest.mark.parametrize("name", ["compiled", "Python"])
def test_ranks_that_are_left_alone_hear_of_it(kernel: str, tmp_path: Path, name: str) -> None:
    """A collective that fails must fail for the script, whoever waits for it."""
    folder = prepare(tmp_path)
    (folder / "train.py").write_text(
        "import os, sys, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "value = torch.ones(5000)\n"
        "for step in range(9):\n"
        "    if step == 6 and dist.get_rank():\n"
        "        os._exit(0)\n"
        "    try:\n"
        "        dist.all_reduce(value, async_op=True).wait()\n"
        "    except RuntimeError as error:\n"
        "        print('heard', flush=True)\n"
        "        sys.exit(0)\n"
    )
    done = record(folder, "light", 2, **({"PHALANX_NO_CACHE": "1"} if name == "Python" else {}))
    assert kernel_of(done) == name
    assert "heard" in (done.rank(0) / "output.log").read_text(), done.err


def test_what_others_could_have_written_is_not_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "compiled"
    folder.mkdir(mode=0o700)
    file = folder / "kernel.so"
    file.touch(mode=0o700)
    assert compiled.is_trusted(str(file))
    file.chmod(0o722)
    assert not compiled.is_trusted(str(file))
    file.chmod(0o700)
    folder.chmod(0o777)
    assert not compiled.is_trusted(str(file))
    assert not compiled.is_trusted(str(folder / "none.so"))


def test_it_is_not_compiled_where_that_is_not_wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    facts = {"folder": str(tmp_path), "version": "1", "git": "", "abi": "1"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "include" / "ATen").mkdir(parents=True)
    assert compiled.is_wanted(facts) == (compiled.compiler() is not None)
    target = Path(compiled.target_of(facts))
    target.parent.mkdir(parents=True)
    Path(f"{target}.failed").touch()
    assert not compiled.is_wanted(facts)
    monkeypatch.setenv("PHALANX_NO_COMPILER", "1")
    assert compiled.target_of(facts) == ""
