"""Checkpoints that the tests examine, written by the real libraries; DeepSpeed's and Megatron's layouts by torch.save."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from phalanx.checkpoint_files import Examined, Options, examine


def look(path: Path, **options: Any) -> Examined:
    return examine(path, Options(**options))


def ids(examined: Examined) -> list[str]:
    return [fact.id.removeprefix("checkpoint.") for fact in examined.facts]


def trained() -> tuple[Any, Any]:
    """A small model and its Adam after one step."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(3, 4)).sum().backward()
    optimizer.step()
    return model, optimizer


def whole(**more: Any) -> dict[str, Any]:
    model, optimizer = trained()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "step": 40, **more}


def deepspeed_folder(folder: Path, ranks: int = 2, stage: int = 2, steps: dict[int, int] | None = None) -> Path:
    """As DeepSpeed 0.19 writes: `latest`, one file of the model (one a rank in stage 3) and one of the optimizer a rank."""
    import torch

    step = folder / "global_step40"
    step.mkdir(parents=True)
    (folder / "latest").write_text("global_step40")
    for rank in range(ranks):
        torch.manual_seed(rank)
        name = f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
        state = {
            "zero_stage": stage,
            "partition_count": ranks,
            "loss_scaler": None,
            "base_optimizer_state": {"state": {0: {"exp_avg": torch.randn(32), "exp_avg_sq": torch.rand(32)}}},
            "single_partition_of_fp32_groups": [torch.randn(32)],
        }
        torch.save({"optimizer_state_dict": state, "ds_version": "0.19.8"}, step / name)
        model = f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt" if stage == 3 else "mp_rank_00_model_states.pt"
        if rank == 0 or stage == 3:
            said = {
                "module": {"a.weight": torch.empty(0) if stage == 3 else torch.randn(8, 8)},
                "param_shapes": [{"a.weight": torch.Size([8, 8])}],
                "dp_world_size": ranks,
                "mp_world_size": 1,
                "global_steps": (steps or {}).get(rank, 40),
                "optimizer": None,
                "lr_scheduler": None,
            }
            torch.save(said, step / model)
    return folder


def megatron_folder(folder: Path, tensor: int = 2, wrote: dict[int, int] | None = None) -> Path:
    """As Megatron-LM writes: a folder for each tensor-parallel rank, with the run's arguments in each file."""
    import torch

    for rank in range(tensor):
        place = folder / "iter_0000040" / f"mp_rank_{rank:02d}"
        place.mkdir(parents=True)
        torch.manual_seed(rank)
        arguments = Namespace(
            tensor_model_parallel_size=tensor,
            pipeline_model_parallel_size=1,
            world_size=2 * tensor,
            rank=(wrote or {}).get(rank, rank),
        )
        model = {"language_model": {"layer.weight": torch.randn(8, 8), "layer.bias": torch.randn(8)}}
        state = {
            "args": arguments,
            "iteration": 40,
            "model": model,
            "optimizer": {"state": {0: {"exp_avg": torch.randn(8, 8)}}},
            "rng_state": [1],
        }
        torch.save(state, place / "model_optim_rng.pt")
    (folder / "latest_checkpointed_iteration.txt").write_text("40")
    return folder
