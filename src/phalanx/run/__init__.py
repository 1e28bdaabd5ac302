"""Starts a job on this machine, watches every rank, and leaves a bundle behind."""
