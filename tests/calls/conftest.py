"""Where the calls of these tests run: bundles in the test's folder, hosts that SSH can reach, real engines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import phalanx
from tests.backends.kube_api import Cluster as KubernetesApi
from tests.backends.slurm_cluster import Slurm

from . import clusters
from .sharing import shared
from .sshd import NEEDS, is_possible, two_hosts

SOURCE = str(Path(phalanx.__file__).parent.parent)
On = Callable[..., phalanx.Function[..., Any]]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")])))


@pytest.fixture(scope="session")
def ssh_config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if not is_possible():
        pytest.skip(NEEDS)
    with two_hosts(tmp_path_factory.mktemp("ssh")) as config:
        yield config


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    clusters.needs_slurm()
    with shared("slurm", tmp_path_factory) as (folder, _), pytest.MonkeyPatch.context() as patch:
        cluster = Slurm(folder)
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        yield cluster


@pytest.fixture(scope="session")
def ray_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    clusters.needs_ray()
    with shared("ray", tmp_path_factory) as (_, address):
        yield address


@pytest.fixture(scope="session")
def kubernetes_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    with clusters.kubernetes(tmp_path_factory.mktemp("kubernetes")) as cluster:
        yield cluster


@pytest.fixture
def engine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, dict[str, object]]:
    """An engine's name, and its options for two nodes."""
    name = str(request.param)
    options: dict[str, object] = {"nodes": 2}
    if name == "slurm":
        request.getfixturevalue("slurm_cluster")
    elif name == "ray":
        options["address"] = request.getfixturevalue("ray_address")
    elif name == "kubernetes":
        cluster = request.getfixturevalue("kubernetes_api")
        options |= {"kubeconfig": cluster.kubeconfig, "image": "registry/train:1", "driver": "127.0.0.1"}
    elif name == "mpich":
        name, options["mpirun"], options["implementation"] = "mpi", clusters.mpich(), "mpich"
    elif name == "mpi":
        options["mpirun"] = clusters.open_mpi()
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    elif name == "ssh":
        options = {"hosts": "alpha,beta", "config": str(request.getfixturevalue("ssh_config"))}
    return name, options


@pytest.fixture
def on(engine: tuple[str, dict[str, object]], tmp_path: Path) -> On:
    """A function on this engine's two nodes."""
    name, options = engine

    def seated(function: phalanx.Function[..., Any]) -> phalanx.Function[..., Any]:
        with_path = function.options(env={"PYTHONPATH": SOURCE, "TEST_JOB": str(tmp_path)})
        return with_path.on(name, project=Path(__file__).parent, **options)

    return seated
