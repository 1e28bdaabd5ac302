"""Checkpoints on disk, of all frameworks, examined without running anything in them (`phalanx check CHECKPOINT`)."""

from phalanx.checkpoint_files.examine import (
    Examined,
    Options,
    against_checkpoint,
    examine,
    is_checkpoint,
    read_checkpoint,
)
from phalanx.checkpoint_files.model import Checkpoint, CheckpointError

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Examined",
    "Options",
    "against_checkpoint",
    "examine",
    "is_checkpoint",
    "read_checkpoint",
]
