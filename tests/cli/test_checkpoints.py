"""`phalanx check CHECKPOINT` on the command line: exit codes, JSON, and input that is hostile or no checkpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkpoint_files.made import trained, whole
from tests.needs import needs_torch

pytestmark = needs_torch


def check(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "phalanx", "check", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
    )


def test_exit_codes(tmp_path: Path) -> None:
    import torch

    good, warned, bad = tmp_path / "good.pt", tmp_path / "warned.pt", tmp_path / "bad.pt"
    torch.save(whole(), good)
    torch.save({f"module.{name}": one for name, one in trained()[0].state_dict().items()}, warned)
    bad.write_bytes(good.read_bytes()[:3000])
    assert check(str(good)).returncode == 0
    assert check(str(warned)).returncode == 3
    done = check(str(bad), str(good))
    assert done.returncode == 1
    assert "bad.pt is cut short" in done.stdout
    done = check(str(tmp_path / "none.pt"))
    assert (done.returncode, done.stderr) == (2, f"phalanx: {tmp_path / 'none.pt'}: there is no such file or folder\n")
    assert check("--against", str(warned), "nothing-here").returncode == 2


def test_json_is_the_contract_with_what_the_checkpoint_holds(tmp_path: Path) -> None:
    import torch

    torch.save(whole(), tmp_path / "a.pt")
    torch.save({f"module.{name}": one for name, one in trained()[0].state_dict().items()}, tmp_path / "b.pt")
    done = check(str(tmp_path / "a.pt"), "--against", str(tmp_path / "b.pt"), "--format", "json")
    said = json.loads(done.stdout)
    assert said["schema"] == "phalanx.report/1"
    assert said["verdict"]["cause"] == "module-prefix-in-checkpoint"
    assert said["verdict"]["fixes"][0]["do"] == "Change the loading code to: model.module.load_state_dict(state_dict)"
    assert said["checkpoints"][0]["format"] == "torch.save file"
    assert done.returncode == 1


def test_the_users_code_is_announced(tmp_path: Path) -> None:
    import torch

    torch.save(trained()[0].state_dict(), tmp_path / "a.pt")
    (tmp_path / "mynet.py").write_text("import torch\ndef build():\n    return torch.nn.Linear(4, 8)\n")
    done = check("a.pt", "--against", "mynet:build", cwd=tmp_path)
    assert "imports and calls your code" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("name", ["pipe.pt", "pipe.safetensors", "pipe.keras", "pipe.index"])
def test_pipes_are_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    done = check(str(tmp_path / name))
    assert done.returncode == 2
    assert "regular file" in done.stderr


def test_a_pipe_among_the_shards_is_told(tmp_path: Path) -> None:
    import torch

    torch.save(whole(), tmp_path / "rank0.pt")
    os.mkfifo(tmp_path / "rank1.pt")
    done = check(str(tmp_path))
    assert done.returncode == 1
    assert "rank1.pt" in done.stdout


def test_source_folders_are_still_analysed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    done = check(str(tmp_path))
    assert (done.returncode, "1 file" in done.stdout) == (0, True)
