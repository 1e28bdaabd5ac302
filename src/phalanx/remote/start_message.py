"""What an agent is told to start: the job, its place in it, and where all ranks are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from phalanx.run.spec import JobSpec, OnStall

if TYPE_CHECKING:  # the driver's side: an agent does without
    from phalanx.remote.agent_pool import AgentPool
    from phalanx.remote.job import Job
    from phalanx.remote.lines import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMessage:
    """One attempt of a job as one node is to run it."""

    spec: JobSpec  # of the whole job
    attempt: int
    node: int
    layout: tuple[int, ...]  # ranks by node
    hosts: tuple[str, ...]  # by rank, where it can be reached
    ports: tuple[int, ...]
    store_port: int | None
    run_id: str
    root: str  # where the project was packed
    path: tuple[str, ...]  # the caller's sys.path

    def to_message(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> StartMessage:
        """The reverse. Raises KeyError, TypeError or ValueError where the driver is of another release."""
        lists = {name: tuple(message[name]) for name in ("layout", "hosts", "ports", "path")}
        return cls(**{**message, **lists, "spec": JobSpec.from_message(message["spec"])})

    @property
    def size(self) -> int:
        """Ranks of the whole job."""
        return sum(self.layout)


def start_message(
    job: Job, pool: AgentPool, line: Line, attempt: int, ports: list[int], store_port: int | None, run_id: str
) -> dict[str, Any]:
    """The `start` message for one node."""
    assert line.node is not None
    spec = job.spec
    # By which code inside a function learns that it is not the first attempt.
    ours = {"PHALANX_ATTEMPT": str(attempt)} | ({"PHALANX_CHECKPOINTS": job.checkpoints} if job.checkpoints else {})
    # Whom a stall ends is decided by the driver, which sees all nodes.
    on_stall = OnStall.REPORT if spec.on_stall is OnStall.ABORT else spec.on_stall
    return StartMessage(
        spec=replace(spec, environment={**spec.environment, **ours}, on_stall=on_stall),
        attempt=attempt,
        node=line.node,
        layout=pool.layout,
        hosts=tuple(pool.hosts()),
        ports=tuple(ports),
        store_port=store_port,
        run_id=run_id,
        root=job.root,
        path=job.path,
    ).to_message()
