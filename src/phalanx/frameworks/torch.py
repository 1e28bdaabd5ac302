"""PyTorch, and what is built on it: the variables that torchrun sets."""

import re

from phalanx.frameworks.launching import Meeting, Seat

NAME = "torch"
SIGNS = re.compile(
    r"\btorch[./\\]|\bc10d?\b|ProcessGroup(?:NCCL|Gloo)|\btorchrun\b|\bPyTorch\b|\bimport torch\b|\[rank\d+\]:", re.I
)
OUTRANKS: tuple[str, ...] = ()
IMPORTS = (
    "torch",
    "accelerate",
    "composer",
    "deepspeed",
    "fairscale",
    "fastai",
    "ignite",
    "lightning",
    "megatron",
    "pytorch_lightning",
    "timm",
    "torchtitan",
    "torchvision",
    "transformers",
    "trl",
)


def ports_needed(size: int) -> int:
    """One: the store of rank 0."""
    return 1


def variables(seat: Seat, meeting: Meeting) -> dict[str, str]:
    """As torchrun sets them. Rank 0 serves the store itself, so no process of ours has to import PyTorch."""
    rank, size, at = str(seat.rank), str(seat.size), seat.at
    return {
        "RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_RANK": str(at.local_rank),
        "LOCAL_WORLD_SIZE": str(at.local_size),
        "GROUP_RANK": str(at.node),
        "GROUP_WORLD_SIZE": str(at.nodes),
        "ROLE_NAME": "default",
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": size,
        "MASTER_ADDR": meeting.host,
        "MASTER_PORT": str(meeting.ports[0]),
        "TORCHELASTIC_RESTART_COUNT": str(meeting.attempt),
        "TORCHELASTIC_MAX_RESTARTS": str(meeting.max_restarts),
        "TORCHELASTIC_RUN_ID": meeting.run_id,
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    }
