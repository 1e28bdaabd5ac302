"""How a node's devices are shared out among its ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.remote.devices import devices_for
from phalanx.run.plan import PlanError


def test_nothing_said_and_none_wanted() -> None:
    assert devices_for(None, 4, "torch", {}) is None
    assert devices_for(0, 4, "torch", {}) == "none"


def test_ranks_that_choose_for_themselves_see_all_others_their_own() -> None:
    given = {"CUDA_VISIBLE_DEVICES": "2,3,5,7"}
    assert devices_for(1, 2, "torch", given) == "2,3"
    assert devices_for(1, 2, "tensorflow", given) == "2/3"
    assert devices_for(2, 2, "torch", given) == "2,3/5,7"


def test_device_files_are_counted(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert devices_for(1, 2, "torch", {}, tmp_path) == "0,1"
    with pytest.raises(PlanError, match="3 devices, but this node has 2 by its device files"):
        devices_for(1, 3, "torch", {}, tmp_path)
