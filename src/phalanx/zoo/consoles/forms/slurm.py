"""What srun leaves: one file of all tasks, with or without labels, where a task is a rank or an agent of a node."""

from phalanx.zoo.consoles.form import Form, merged
from phalanx.zoo.consoles.stage import Line, Stage


def _task(line: Line, stage: Stage) -> str:
    if line.rank is None:
        return ""
    width = len(str(stage.job.world - 1))
    return f"{line.rank:>{width}}: "


def _node_task(line: Line, stage: Stage) -> str:
    """srun -l with one torchrun for each node: the number is the node's, not the rank's."""
    if line.source == "scheduler":
        return ""
    return f"{line.node:>{len(str(stage.job.nodes - 1))}}: "


FORMS = (
    Form("srun", "srun, a task for each rank, no labels", launcher="srun", file=merged, nccl="warn"),
    Form(
        "srun-l", "srun -l, a task for each rank", launcher="srun", file=merged, prefix=_task, labels=lambda job: True
    ),
    Form("srun-l-torchrun", "srun -l with a torchrun for each node", file=merged, prefix=_node_task, nodes=2),
)
