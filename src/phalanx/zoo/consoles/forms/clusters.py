"""What kubectl, DeepSpeed's launcher, Ray and log collectors make of the lines."""

from phalanx.zoo.consoles.form import Form, merged
from phalanx.zoo.consoles.stage import Line, Stage


def _pod(line: Line, stage: Stage) -> str:
    role = "master-0" if line.node == 0 else f"worker-{line.node - 1}"
    return f"[pod/llm-{role}/pytorch] "


def _pdsh(line: Line, stage: Stage) -> str:
    if stage.job.nodes == 1 or line.source == "scheduler":
        return ""
    return f"{stage.job.hosts[line.node]}: "


def _ray(line: Line, stage: Stage) -> str:
    if line.rank is None:
        return ""
    return f"(RayTrainWorker pid={stage.job.pids[line.rank]}, ip={stage.job.ip(line.node)}) "


def _cri(line: Line, stage: Stage) -> str:
    """The container runtime's own time stamps, as collectors ship them."""
    when = stage.when(line.at)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{when.microsecond:06d}{stage.job.seed % 1000:03d}Z stderr F "


def _second_pod(lines: list[Line] | tuple[Line, ...], stage: Stage) -> list[Line]:
    return [line for line in lines if line.node == 1 and line.source in ("rank", "agent")]


FORMS = (
    Form("kubectl-prefix", "kubectl logs --prefix of all pods", file=merged, prefix=_pod, nccl="warn"),
    Form(
        "kubectl-one-pod",
        "kubectl logs of one pod that is not the first",
        file=merged,
        keep=_second_pod,  # type: ignore[arg-type]
        covers=lambda stage: set(stage.job.ranks_of(1)),
        nodes=2,
        nccl="warn",
    ),
    Form(
        "deepspeed", "deepspeed's launcher, pdsh on several nodes", "deepspeed", "deepspeed", file=merged, prefix=_pdsh
    ),
    Form("ray", "Ray Train's worker prefixes", launcher="ray", file=merged, prefix=_ray, nccl="warn", most=128),
    Form("collector", "a collector's time stamps before each line", file=merged, prefix=_cri, nccl="warn"),
)
