"""The engines that tests of calls start, for attaching to jobs of theirs."""

from tests.calls.conftest import slurm_cluster, ssh_config

__all__ = ["slurm_cluster", "ssh_config"]
