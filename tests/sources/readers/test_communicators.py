"""Which rank uses which GPU."""

from __future__ import annotations

import pytest

from phalanx.sources.readers.communicators import SOURCE

from .test_tracebacks import events


@pytest.mark.parametrize(
    "text",
    [
        "node3:4712:5020 [3] NCCL INFO comm 0x55d0 rank 27 nranks 64 cudaDev 3 busId 61000 - Init COMPLETE\n",
        "node3:4712:5020 [3] NCCL INFO ncclCommInitRank comm 0x55d0 rank 27 nranks 64 cudaDev 3 nvmlDev 3 busId 61000 commId 0x9f - Init COMPLETE\n",
    ],
)
def test_rank_process_and_bus_of_a_communicator(text: str) -> None:
    [event] = [event for event in events(text) if event.source == SOURCE]
    assert dict(event.data) == {"rank": 27, "size": 64, "pid": 4712, "device": 3, "host": "node3", "bus": "61000"}
