"""How many devices a line speaks of."""

from __future__ import annotations

import pytest

from phalanx.sources.scales import Scales, devices_in


@pytest.mark.parametrize(
    ("line", "devices"),
    [
        ("world_size=4 throughput: 812.5 samples/sec", 4),
        ("=== 2 gpus ===", 2),
        ("replicas 4 step 10 loss 2.3120", 4),
        ("ngpus=8 images/sec: 3100.2", 8),
        ("number of replicas: 2", 2),
        ("rank 3 step 10 loss 2.3", None),
        ("gpu 0 memory 1200", None),
        ("2 nodes with 4 gpus", None),  # which of them is meant
        ("nodes: 127.0.0.1:29500", None),
    ],
)
def test_number_of_devices(line: str, devices: int | None) -> None:
    stated = devices_in(line)
    assert (None if stated is None else int(line[stated.start : stated.stop])) == devices


def test_what_is_for_each_device_is_known() -> None:
    stated = devices_in("4 gpus: 195.0 images/sec per gpu")
    assert stated is not None
    assert stated.is_each


def test_numbers_before_any_devices_were_stated_are_left_out() -> None:
    scales = Scales()
    scales.take("rate", "120.0", (-1, -1), 1)
    assert not scales.counts
