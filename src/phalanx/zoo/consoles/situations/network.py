"""InfiniBand, sockets and the ways between GPUs of a node: NCCL's own errors, at the start and in training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from phalanx.zoo.consoles import acts, endings
from phalanx.zoo.consoles.formats import render
from phalanx.zoo.consoles.situation import Situation
from phalanx.zoo.consoles.stage import Stage

_NETWORK = ("fix-network-setting", "fix-communication-configuration", "change-hardware")


def _peer(stage: Stage, rank: int) -> str:
    node = (stage.job.node(rank) + 1) % stage.job.nodes
    return f"{stage.job.ip(node)}<{40000 + stage.rng.randrange(20000)}>"


def _completion(stage: Stage, status: int, vendor: int, *, event: str | None = None) -> tuple[int, ...]:
    """A transfer over InfiniBand or RoCE fails; the ranks of both ends report it. Nobody is to blame: it is the path."""
    acts.start(stage)
    acts.train(stage)
    job = stage.job
    first = stage.pick()
    ranks = [first, (first + job.per_node) % job.world]
    gids = f" localGid ::ffff:{job.ip(0)} remoteGid ::ffff:{job.ip(1)}" if stage.rng.random() < 0.5 else ""
    _, main = acts.hold(stage, {first: 0})
    if event:
        node = job.node(first)
        stage.kernel(node, render("kernel", "mlx5.down", "any", bus="5e", interface="ib0"))
        stage.kernel(node, render("kernel", "mlx5.up", "any", bus="5e", interface="ib0"), at=stage.clock + 4)
        stage.nccl(first, "ib.async", event=event, hca="mlx5_0", tells="what why")
    for rank in ranks:
        at = stage.clock + 6 + stage.rng.random()
        last = stage.nccl(
            rank,
            "ib.completion",
            at=at,
            tells="what why",
            peer=_peer(stage, rank),
            status=status,
            opcode=0,
            length=0,
            vendor=vendor,
            request="Send" if rank == first else "Recv",
            gids=gids,
            hca="mlx5_0",
        )
        error = acts.nccl_text(stage, "ncclRemoteError", last, checked=False)
        fields: dict[str, Any] = {
            **stage.group_fields(job.groups[0], rank),
            "error": error,
            "work": render(
                "torch",
                "work",
                job.torch,
                seq=main[rank].seq + 1,
                op="ALLREDUCE",
                numel_in=27304960,
                numel_out=27304960,
                timeout=job.timeout_ms,
            ),
            "seq": main[rank].seq + 1,
            "enqueued": main[rank].seq + 1,
            "completed": main[rank].seq,
        }
        stage.c10(rank, "watchdog.exception", at=at, tells="what why", **fields)
        stage.c10(rank, "watchdog.status", at=at + 0.001, **fields)
        if job.torch == "1.13":
            acts.traceback(stage, rank, f"RuntimeError: {error}", place="collective", at=at, tells="what why")
        else:
            stage.c10(rank, "watchdog.terminated", at=at + 0.002, tells="what why", **fields)
            acts.take_down(stage, rank, at + 0.01, fields, "checkForNCCLErrorsInternal")
    endings.collapse(stage)
    return ()


def _setup(stage: Stage, kind: str, warn: Callable[[Stage, int], str]) -> tuple[int, ...]:
    """NCCL cannot make its communicator: ranks raise at the first collective, with NCCL's last error in the text."""
    acts.start(stage, connect=False)
    job = stage.job
    exception = "RuntimeError" if job.torch in ("1.13",) else "torch.distributed.DistBackendError"
    tells = "what" if warn is _versions and not _compares_versions(stage) else "what why"
    for rank in range(job.world):
        at = stage.clock + stage.rng.random()
        last = warn(stage, rank)
        text = f"{exception}: {acts.nccl_text(stage, kind, last)}"
        acts.traceback(stage, rank, text, place="setup", at=at, tells=tells)
    endings.collapse(stage)
    return ()


def _warn(name: str, **fields: Any) -> Callable[[Stage, int], str]:
    def say(stage: Stage, rank: int) -> str:
        values: dict[str, Any] = {
            key: value(stage, rank) if callable(value) else value for key, value in fields.items()
        }
        return stage.nccl(rank, name, tells="what why", **values)

    return say


def _shm(stage: Stage, rank: int) -> str:
    fields: dict[str, Any] = {"segment": f"{stage.job.seed % 46656:x}Kz{rank}", "size": 33030528}
    first = stage.nccl(rank, "shm.extend", tells="what why", **fields)
    return stage.nccl(rank, "shm.segment", tells="what why", **fields) or first


def _duplicate(stage: Stage) -> tuple[int, ...]:
    """Two ranks of a node use one GPU (no set_device): NCCL refuses on both."""
    acts.start(stage, connect=False)
    job = stage.job
    first = stage.rng.randrange(0, job.world, job.per_node)
    for rank, other in ((first, first + 1), (first + 1, first)):
        last = stage.nccl(rank, "init.duplicate", tells="what why", group_rank=rank, other=other, bus=job.bus(first))
        exception = "RuntimeError" if job.torch == "1.13" else "torch.distributed.DistBackendError"
        text = acts.nccl_text(stage, "ncclInvalidUsage", last)
        acts.traceback(stage, rank, f"{exception}: {text}", place="setup", tells="what why")
    endings.collapse(stage)
    return ()


def _compares_versions(stage: Stage) -> bool:
    """Before 2.23 NCCL only says that the sizes of a message differ."""
    return tuple(map(int, stage.job.nccl.split("."))) >= (2, 23)


def _versions(stage: Stage, rank: int) -> str:
    other = (rank + stage.job.per_node) % stage.job.world
    return stage.nccl(
        rank,
        "init.mismatch" if _compares_versions(stage) else "bootstrap.truncated",
        tells="what why" if _compares_versions(stage) else "what",
        received=104,
        expected=96,
        group_rank=rank,
        other=other,
        version=22705,
        other_version=22602,
    )


_SETUP = "comm.setup-failure"

SITUATIONS = (
    Situation(
        "ib-link-flap",
        "a port goes down and the retries are exceeded",
        partial(_completion, status=12, vendor=129, event="port error"),
        "fail.communication-error",
        "infiniband-transfer-failed",
        _NETWORK,
        nodes=2,
    ),
    Situation(
        "ib-retry-exceeded",
        "the transport's retries are exceeded",
        partial(_completion, status=12, vendor=129),
        "fail.communication-error",
        "infiniband-transfer-failed",
        _NETWORK,
        nodes=2,
    ),
    Situation(
        "ib-local-protection",
        "a local protection error",
        partial(_completion, status=4, vendor=81),
        "fail.communication-error",
        "infiniband-transfer-failed",
        (*_NETWORK, "fix-dependency-version"),
        nodes=2,
    ),
    Situation(
        "ib-wrong-gid",
        "the wrong GID index: queue pairs cannot connect",
        partial(
            _setup,
            kind="ncclSystemError",
            warn=_warn(
                "ib.modify",
                errno_text="Connection timed out",
                errno=110,
                hca="mlx5_0",
                gid_index=0,
                gid="fe80::ba59:9fff:fe12:3456",
                gid_remote="fe80::ba59:9fff:fe65:4321",
            ),
        ),
        _SETUP,
        "infiniband-call-failed",
        ("fix-communication-configuration", "fix-network-setting"),
        nodes=2,
    ),
    Situation(
        "ib-memory-registration",
        "memory registration is refused",
        partial(_setup, kind="ncclSystemError", warn=_warn("ib.register", errno_text="Cannot allocate memory")),
        _SETUP,
        "locked-memory-limit-too-low",
        ("fix-memory-or-core-setting",),
        nodes=2,
    ),
    Situation(
        "socket-refused",
        "a socket of NCCL is refused",
        partial(
            _setup, kind="ncclRemoteError", warn=_warn("socket.retries", peer=_peer, errno_text="Connection refused")
        ),
        _SETUP,
        "nccl-peer-connection-failed",
        ("fix-communication-configuration", "fix-network-setting"),
        nodes=2,
        also=("prep.communication-error",),
    ),
    Situation(
        "socket-unreachable",
        "no route between the nodes",
        partial(
            _setup, kind="ncclSystemError", warn=_warn("socket.connect", peer=_peer, errno_text="No route to host")
        ),
        _SETUP,
        "nccl-peer-connection-failed",
        ("fix-communication-configuration", "fix-network-setting"),
        nodes=2,
        also=("prep.communication-error",),
    ),
    Situation(
        "socket-wrong-interface",
        "NCCL took an interface of containers",
        partial(
            _setup,
            kind="ncclSystemError",
            warn=_warn("socket.connect", peer="172.17.0.1<41211>", errno_text="Connection refused"),
        ),
        _SETUP,
        "nccl-peer-connection-failed",
        ("fix-communication-configuration", "fix-network-setting"),
        nodes=2,
        also=("prep.communication-error",),
    ),
    Situation(
        "no-interface",
        "NCCL_SOCKET_IFNAME names no interface",
        partial(_setup, kind="ncclInternalError", warn=_warn("bootstrap.none")),
        _SETUP,
        "nccl-no-socket-interface",
        ("fix-communication-configuration",),
    ),
    Situation(
        "nccl-shared-memory",
        "/dev/shm is too small for NCCL",
        partial(_setup, kind="ncclSystemError", warn=_shm),
        _SETUP,
        "nccl-shared-memory-failed",
        ("fix-memory-or-core-setting",),
    ),
    Situation(
        "nvls-fails",
        "NVLink SHARP cannot be set up",
        partial(_setup, kind="ncclUnhandledCudaError", warn=_warn("nvls.bind")),
        _SETUP,
        "nccl-multicast-setup-failed",
        (
            "fix-communication-configuration",
            "fix-dependency-version",
            "fix-consistency-between-devices",
            "change-hardware",
            "other",
        ),
    ),
    Situation(
        "peer-access-fails",
        "two GPUs cannot reach each other",
        partial(
            _setup,
            kind="ncclUnhandledCudaError",
            warn=_warn(
                "p2p.peer",
                other_device=3,
                bus="43000",
                code=217,
                text="peer access is not supported between these two devices",
            ),
        ),
        _SETUP,
        "peer-access-refused",
        ("fix-communication-configuration", "fix-dependency-version", "change-hardware"),
        also=("fail.device-error",),
    ),
    Situation(
        "duplicate-gpu",
        "two ranks use one GPU",
        _duplicate,
        _SETUP,
        "two-ranks-on-one-gpu",
        ("fix-device-assignment", "fix-distributed-api-usage"),
    ),
    Situation(
        "version-mismatch",
        "nodes have different NCCL",
        partial(_setup, kind="ncclInternalError", warn=_versions),
        _SETUP,
        "nccl-versions-differ",
        ("fix-consistency-between-devices", "fix-dependency-version"),
        nodes=2,
    ),
)
