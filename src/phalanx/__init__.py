"""Phalanx: why a distributed training job failed, and what to change."""

__version__ = "0.1.0"
