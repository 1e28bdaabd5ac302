"""The engines that tests of calls start, for attaching to jobs of theirs."""

from tests.calls.conftest import ray_address, slurm_cluster, ssh_config

__all__ = ["ray_address", "slurm_cluster", "ssh_config"]
