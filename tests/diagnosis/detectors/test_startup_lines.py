"""Devices that were asked for and not found."""

from __future__ import annotations

import pytest

from phalanx.diagnosis.detectors.startup_lines import asked_and_found


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("asked for 4 devices but only 1 is visible; training on 1", (4, 1)),
        ("WARNING: 8 GPUs requested but torch.cuda.device_count() returned 2", (8, 2)),
        ("Number of replicas: 1 (expected 4)", (4, 1)),
        ("running on 1 device instead of 4", (4, 1)),
        ("found only 2 out of 8 GPUs", (8, 2)),
        ("expected 4 GPUs, found 4", None),
        ("found 3 GPUs, need 2", None),
        ("rank 1: using GPU 1 of 4 GPUs", None),
        ("process 0: 1 of 2 devices are local", None),
        ("per-device batch 32 (expected 64)", None),
        ("loader asked for 8 workers, using 2", None),
        ("expected 3 epochs, found 2 checkpoints", None),
    ],
)
def test_asked_and_found(line: str, numbers: tuple[int, int] | None) -> None:
    assert asked_and_found(line) == numbers
