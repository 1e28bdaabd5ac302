"""Checkpoints of PyTorch in all forms: healthy ones give nothing, each fault gives its own finding."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from phalanx.checkpoint_files import is_checkpoint
from tests.checkpoint_files.made import deepspeed_folder, ids, look, megatron_folder, trained, whole
from tests.needs import needs_torch

pytestmark = needs_torch


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_whole_file_in_both_forms(tmp_path: Path, is_zip: bool) -> None:
    import torch

    path = tmp_path / "a.pt"
    torch.save(whole(rng=torch.get_rng_state()), path, _use_new_zipfile_serialization=is_zip)
    seen = look(path)
    assert seen.facts == ()
    assert seen.summary["tensors"] == {"model": 7, "optimizer": 12}
    assert seen.summary["parameters"] == 73
    assert seen.summary["stamps"] == {"epoch": [3], "step": [40]}
    assert seen.summary["lacks"] == ["scheduler", "scaler", "sampler"]
    path.write_bytes(path.read_bytes()[:-1000])
    assert ids(look(path)) == ["file-truncated"]


def test_numbers_that_are_not_finite_are_named(tmp_path: Path) -> None:
    import torch

    saved = whole()
    saved["model"]["0.weight"][2, 1] = float("nan")
    saved["optimizer"]["state"][1]["exp_avg_sq"][0] = float("inf")
    torch.save(saved, tmp_path / "a.pt")
    facts = look(tmp_path / "a.pt").facts
    assert [(one.fields["first"], one.fields["numbers"]) for one in facts] == [
        ("0.weight", "1 NaN of 32 numbers"),
        ("optimizer.state.1.exp_avg_sq", "1 infinite of 8 numbers"),
    ]


def test_a_changed_byte_is_found_by_the_checksum(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "a.pt"
    torch.save(whole(), path)
    data = bytearray(path.read_bytes())
    place = data.index(trained()[0][0].weight.detach().numpy().tobytes())
    data[place] ^= 1
    path.write_bytes(data)
    facts = look(path).facts
    assert [one.id for one in facts] == ["checkpoint.file-corrupt"]
    assert "0.weight" in str(facts[0].fields["detail"])


def test_wrappers_prefixes_and_the_line_that_strips_them(tmp_path: Path) -> None:
    import torch

    model = trained()[0]
    torch.save({f"module.{name}": one for name, one in model.state_dict().items()}, tmp_path / "ddp.pt")
    torch.save({f"_orig_mod.{name}": one for name, one in model.state_dict().items()}, tmp_path / "compiled.pt")
    torch.save({f"encoder.module.{name}": one for name, one in model.state_dict().items()}, tmp_path / "own.pt")
    assert look(tmp_path / "ddp.pt").facts[0].fields["line"] == (
        'torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state_dict, "module.")'
    )
    assert look(tmp_path / "compiled.pt").facts[0].fields["prefix"] == "_orig_mod."
    assert ids(look(tmp_path / "own.pt")) == []


def test_a_pickle_that_runs_code_is_refused_and_not_run(tmp_path: Path) -> None:
    import torch

    class Evil:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path}/ran",)

    torch.save({**whole(), "x": Evil()}, tmp_path / "a.pt")
    assert ids(look(tmp_path / "a.pt")) == ["runs-code"]
    assert not (tmp_path / "ran").exists()


def test_states_that_a_resumed_run_needs(tmp_path: Path) -> None:
    import torch

    model, optimizer = trained()
    torch.save({"model": model.state_dict(), "epoch": 3}, tmp_path / "none.pt")
    torch.save(
        {"model": model.state_dict(), "optimizer": torch.optim.Adam(model.parameters()).state_dict(), "step": 9},
        tmp_path / "empty.pt",
    )
    other = torch.optim.Adam(torch.nn.Linear(3, 5).parameters())
    other.param_groups[0]["params"][0].grad = torch.ones(5, 3)
    other.step()
    torch.save({"model": model.state_dict(), "optimizer": other.state_dict(), "step": 9}, tmp_path / "other.pt")
    torch.save(model, tmp_path / "pickled.pt")
    assert ids(look(tmp_path / "none.pt")) == ["optimizer-missing"]
    assert ids(look(tmp_path / "empty.pt")) == ["optimizer-empty"]
    assert ids(look(tmp_path / "other.pt")) == ["optimizer-misfit"]
    assert ids(look(tmp_path / "pickled.pt")) == ["pickled-model"]
    assert optimizer is not None


def test_files_of_ranks(tmp_path: Path) -> None:
    import torch

    for rank in (0, 1, 3):
        torch.save(whole(step=40 if rank else 30), tmp_path / f"rank{rank}.pt")
    seen = look(tmp_path)
    assert ids(seen) == ["files-missing", "torn"]
    assert seen.facts[0].fields["files"] == ("rank2.pt",)
    assert seen.facts[0].ranks == (2,)
    assert seen.summary["world_size"] == 4
    torch.save(whole(), tmp_path / "rank0.pt")
    torch.save(whole(), tmp_path / "rank2.pt")
    assert ids(look(tmp_path)) == []


_SAVES = """
import os, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard
from torch.distributed.checkpoint.state_dict import get_state_dict
dist.init_process_group("gloo"); rank = dist.get_rank(); out = sys.argv[1]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)); fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
model(torch.randn(2, 8)).sum().backward(); optimizer.step()
parts = get_state_dict(model, optimizer)
dcp.save({"model": parts[0], "optim": parts[1], "step": 3}, checkpoint_id=out + "/dcp")
os.makedirs(out + "/local", exist_ok=True); dist.barrier()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}, f"{out}/local/rank{rank}.pt")
replica = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4)); os.makedirs(out + "/ddp", exist_ok=True); dist.barrier()
with torch.no_grad():
    replica.module.weight += rank
torch.save(replica.state_dict(), f"{out}/ddp/rank{rank}.pt")
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def saved_by_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two ranks of FSDP2 and DDP saved."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "save.py").write_text(_SAVES)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(folder / "save.py"),
        str(folder),
    ]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return folder


@pytest.mark.job
def test_a_distributed_checkpoint(saved_by_two: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "dcp"
    shutil.copytree(saved_by_two / "dcp", folder)
    seen = look(folder, ranks=4)  # it reshards: another number of ranks is no fault
    assert seen.facts == ()
    assert (seen.summary["world_size"], seen.summary["parameters"], seen.summary["stamps"]) == (2, 212, {"step": [3]})
    data = (folder / "__1_0.distcp").read_bytes()
    (folder / "__1_0.distcp").write_bytes(data[:-200])
    assert ids(look(folder)) == ["file-truncated"]
    (folder / "__1_0.distcp").unlink()
    assert ids(look(folder)) == ["files-missing"]
    (folder / ".metadata").unlink()
    assert look(folder).facts[0].fields["files"] == (".metadata",)


@pytest.mark.job
def test_local_shards_are_fixed_to_their_number_of_ranks(saved_by_two: Path, tmp_path: Path) -> None:
    import shutil

    assert ids(look(saved_by_two / "local", ranks=2)) == []
    assert ids(look(saved_by_two / "local", ranks=4)) == ["other-world-size"]
    folder = tmp_path / "local"
    shutil.copytree(saved_by_two / "local", folder)
    shutil.copy(folder / "rank0.pt", folder / "rank1.pt")
    assert ids(look(folder)) == ["shards-alike"]


@pytest.mark.job
def test_replicas_that_differ(saved_by_two: Path) -> None:
    assert ids(look(saved_by_two / "ddp")) == ["replicas-differ", "wrapper-prefix"]


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_deepspeed(tmp_path: Path, stage: int) -> None:
    folder = deepspeed_folder(tmp_path / "ds", 4, stage)
    seen = look(folder)
    assert seen.facts == ()
    assert (seen.summary["world_size"], seen.summary["parallelism"]["ZeRO stage"]) == (4, stage)
    assert seen.summary["parameters"] == 64
    assert ids(look(folder, ranks=2)) == ["other-world-size"]
    lost = folder / "global_step40" / "zero_pp_rank_2_mp_rank_00_optim_states.pt"
    data = lost.read_bytes()
    lost.unlink()
    seen = look(folder)
    assert ids(seen) == ["files-missing"]
    assert seen.facts[0].ranks == (2,)
    lost.with_name("zero_pp_rank_7_mp_rank_00_optim_states.pt").write_bytes(data)
    lost.write_bytes(data)
    assert "files-of-another-save" in ids(look(folder))
    (folder / "latest").write_text("global_step50")
    assert ids(look(folder)) == ["pointer-broken"]


def test_a_torn_deepspeed_checkpoint(tmp_path: Path) -> None:
    assert ids(look(deepspeed_folder(tmp_path / "ds", 2, 3, {1: 30}))) == ["torn"]


def test_megatron(tmp_path: Path) -> None:
    folder = megatron_folder(tmp_path / "a")
    seen = look(folder, ranks=4)
    assert seen.facts == ()
    assert seen.summary["parallelism"] == {"tensor": 2, "pipeline": 1, "data": 2}
    assert ids(look(megatron_folder(tmp_path / "b", wrote={0: 1, 1: 0}))) == ["file-misplaced", "file-misplaced"]
    (folder / "iter_0000040" / "mp_rank_01" / "model_optim_rng.pt").unlink()
    assert ids(look(folder)) == ["files-missing"]


def test_safetensors_with_an_index(tmp_path: Path) -> None:
    import json

    from safetensors.torch import save_file

    model = trained()[0].state_dict()
    names = {"0.weight": "model-00001-of-00002.safetensors"}
    names |= {name: "model-00002-of-00002.safetensors" for name in model if name not in names}
    for file in set(names.values()):
        save_file({name: one for name, one in model.items() if names[name] == file}, tmp_path / file)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    assert look(tmp_path).facts == ()
    second = tmp_path / "model-00002-of-00002.safetensors"
    data = second.read_bytes()
    second.write_bytes(data[:-4])
    assert ids(look(tmp_path)) == ["file-truncated"]
    second.unlink()
    assert ids(look(tmp_path)) == ["files-missing"]
    (tmp_path / "model.safetensors.index.json").unlink()
    assert look(tmp_path).facts[0].fields["files"] == ("model.safetensors.index.json", second.name)


def test_accelerate_and_trainer_folders(tmp_path: Path) -> None:
    import json

    import torch
    from accelerate import Accelerator

    model, optimizer = trained()
    accelerator = Accelerator(cpu=True)
    prepared = accelerator.prepare(model, optimizer)
    accelerator.save_state(str(tmp_path / "state"))
    seen = look(tmp_path / "state")
    assert seen.facts == ()
    assert set(seen.summary["states"]) == {"model", "optimizer", "random"}
    assert prepared is not None
    trainer = tmp_path / "checkpoint-500"
    trainer.mkdir()
    torch.save(model.state_dict(), trainer / "pytorch_model.bin")
    torch.save(optimizer.state_dict(), trainer / "optimizer.pt")
    (trainer / "trainer_state.json").write_text(json.dumps({"global_step": 500, "epoch": 1.5}))
    for rank in (0, 1, 3):
        torch.save({"cpu": torch.get_rng_state()}, trainer / f"rng_state_{rank}.pth")
    seen = look(trainer)
    assert ids(seen) == ["random-states-missing"]
    assert (seen.facts[0].ranks, seen.summary["world_size"]) == ((2,), 4)


def test_lightning_is_named(tmp_path: Path) -> None:
    import torch

    model, optimizer = trained()
    saved = {"epoch": 1, "global_step": 10, "pytorch-lightning_version": "2.6.0", "state_dict": model.state_dict()}
    saved |= {
        "loops": {"fit_loop": {"epoch_progress": 1}},
        "optimizer_states": [optimizer.state_dict()],
        "lr_schedulers": [],
    }
    torch.save(saved, tmp_path / "last.ckpt")
    seen = look(tmp_path / "last.ckpt")
    assert (seen.facts, seen.summary["format"]) == ((), "Lightning checkpoint (2.6.0)")
    assert set(seen.summary["states"]) == {"model", "optimizer", "sampler"}


def test_folders_with_scripts_are_source(tmp_path: Path) -> None:
    import torch

    torch.save(whole(), tmp_path / "rank0.pt")
    assert is_checkpoint(tmp_path)
    (tmp_path / "train.py").write_text("")
    assert not is_checkpoint(tmp_path)


def test_an_archive_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"\0" * (64 << 20))
    seen = look(tmp_path / "bomb.pt")
    assert ids(seen) == ["file-corrupt"]
