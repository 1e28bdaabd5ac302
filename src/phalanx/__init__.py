"""Phalanx: why a distributed training job failed, and what to change."""

from phalanx.recorded import checkpoint

__all__ = ["__version__", "checkpoint"]

__version__ = "0.1.0"
