"""Forms in which a part of the output is lost or mixed up."""

from collections.abc import Sequence

from phalanx.zoo.consoles.form import Form, by_node, by_rank, merged
from phalanx.zoo.consoles.stage import Line, Stage

_TAIL = 200


def _tail(lines: Sequence[Line], stage: Stage) -> list[Line]:
    kept: list[Line] = []
    room = _TAIL
    for line in reversed(lines):
        room -= line.text.count("\n") + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def _first_node(lines: Sequence[Line], stage: Stage) -> list[Line]:
    return [line for line in lines if line.node == 0]


def _rank0(lines: Sequence[Line], stage: Stage) -> list[Line]:
    return [line for line in lines if line.rank == 0]


def _missing(stage: Stage) -> set[int]:
    """About a third of the ranks, chosen by the job's seed."""
    return {rank for rank in range(stage.job.world) if (stage.job.seed // 7 + rank * 7919) % 10 < 3}


def _some(lines: Sequence[Line], stage: Stage) -> list[Line]:
    gone = _missing(stage)
    return [line for line in lines if line.rank not in gone and line.source != "agent"]


def _interleave(text: str, stage: Stage) -> str:
    """Two writes to one pipe meet: now and then a line begins in the middle of another."""
    lines = text.split("\n")
    for index in range(0, len(lines) - 1, 11):
        first, second = lines[index], lines[index + 1]
        if len(first) > 160 and len(second) > 160:
            cut = len(first) - 9
            lines[index], lines[index + 1] = first[:cut] + second, first[cut:]
    return "\n".join(lines)


FORMS = (
    Form("tail-200", "only the last 200 lines of the merged console", file=merged, keep=_tail, nccl="warn"),
    Form(
        "first-node",
        "only the first node of several",
        file=by_node,
        keep=_first_node,
        covers=lambda stage: set(stage.job.ranks_of(0)),
        nodes=2,
        kernel=True,
    ),
    Form(
        "rank0-only",
        "only rank 0's file",
        file=by_rank,
        keep=_rank0,
        covers=lambda stage: {0},
        labels=lambda job: True,
        nccl="warn",
    ),
    Form(
        "files-missing",
        "a file for each rank, a third of them missing",
        file=by_rank,
        keep=_some,
        covers=lambda stage: set(range(stage.job.world)) - _missing(stage),
        labels=lambda job: True,
        launcher="srun",
        kernel=True,
        has_rank_files=True,
    ),
    Form("interleaved", "all ranks in one pipe, lines cut into each other", file=merged, finish=_interleave),
)
