"""Which process is which rank: NCCL tells it, with the GPU, when a communicator is made (NCCL_DEBUG=INFO), Ray when its workers start.

node3:4712:5020 [3] NCCL INFO ncclCommInitRank comm 0x55d0 rank 27 nranks 64 cudaDev 3 nvmlDev 3 busId 61000 commId 0x9f - Init COMPLETE
(TorchTrainer pid=9) - (node_id=8d1f, ip=10.0.0.1, pid=2002) world_rank=1, local_rank=1, node_rank=0
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.window import Window

TRIGGERS = (" - Init COMPLETE", ") world_rank=")

SOURCE, WORKER = "nccl-communicator", "ray-worker"
_WORKER = re.compile(r"\bpid=(?P<pid>\d{1,8})\) world_rank=(?P<rank>\d{1,6})\b")
_COMMUNICATOR = re.compile(
    r"^(?P<host>[\w.-]+):(?P<pid>\d{1,8}):\d+ \[\d+\] NCCL INFO .{0,60}?\brank (?P<rank>\d{1,6}) nranks (?P<size>\d{1,6}) "
    r"cudaDev (?P<device>\d{1,3}).{0,24}? busId (?P<bus>[0-9a-f]{1,12})\b"
)


def read(window: Window) -> Iterator[Event]:
    """Rank, size of the group, host, process and bus address; ranks are those of the group, which may be a part of the job."""
    if match := _WORKER.search(window.text):
        yield window.event(EventKind.LINE, WORKER, data={name: int(match[name]) for name in ("rank", "pid")})
    elif match := _COMMUNICATOR.search(window.text):
        numbers = {name: int(match[name]) for name in ("rank", "size", "pid", "device")}
        data = {**numbers, "host": match["host"], "bus": match["bus"]}
        yield window.event(EventKind.LINE, SOURCE, data=data)
