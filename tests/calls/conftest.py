"""Where the calls of these tests run: bundles in the test's folder, and hosts that SSH can reach."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import phalanx

from .sshd import NEEDS, is_possible, two_hosts

SOURCE = str(Path(phalanx.__file__).parent.parent)


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
