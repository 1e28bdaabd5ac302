"""What evidence to collect next time, where this time it did not suffice."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.diagnosis.history import History
from phalanx.model import Confidence, Finding, Unchecked
from phalanx.model.ranks import name_ranks

_NEXT_TIME = {
    "torch": "run with TORCH_CPP_LOG_LEVEL=INFO, TORCH_NCCL_TRACE_BUFFER_SIZE=2000, NCCL_DEBUG=INFO and one log file a rank (torchrun --redirects 3 --log-dir logs)",
    "horovod": "run with HOROVOD_LOG_LEVEL=info, NCCL_DEBUG=INFO and horovodrun --output-filename logs",
    "tensorflow": "run with TF_CPP_MIN_LOG_LEVEL=0, GRPC_VERBOSITY=info and one log file a worker",
    "keras": "run with TF_CPP_MIN_LOG_LEVEL=0 and one log file a worker",
}
_ANY_FRAMEWORK = "start the job with `phalanx run -- python train.py`, or keep one log file a rank with debug output on"


def what_was_not_checked(findings: Sequence[Finding], history: History) -> list[Unchecked]:
    """Ranks without a trace, and the evidence that would make an unsure verdict sure."""
    world = history.world
    collect = _NEXT_TIME.get(world.framework or "", _ANY_FRAMEWORK)
    files = history.seen.files
    empty = [] if findings or any(file.has_output for file in files) else [file.name for file in files]
    items = [Unchecked(f"{name}: no output of a program in it", collect) for name in empty]
    missing = world.all_ranks - world.seen
    if missing and world.seen:
        items.append(Unchecked(f"output of {name_ranks(missing)}", "the log files of these ranks"))
    verdict = findings[0] if findings else None
    if verdict is not None and verdict.confidence is Confidence.POSSIBLE:
        items.append(Unchecked("what caused it, beyond the words quoted", collect))
    elif (
        verdict is None
        and any(file.has_output for file in history.seen.files)
        and not history.is_clean
        and not _ended_well(history)
    ):
        if not history.is_supervised:
            needs = 'its exit status (for instance an exit_codes.json: {"0": 0, "1": 0})'
            items.append(Unchecked("whether the job ended well", needs))
        elif not world.all_ranks <= history.exit_codes.keys():
            items.append(
                Unchecked("how the job ended", "a launcher that lives to see it: it was killed, or still runs")
            )
    return items


def helpful(unchecked: Sequence[Unchecked], findings: Sequence[Finding]) -> list[Unchecked]:
    """Without what could not have told more: of a rank that raised or was killed, no trace says why."""
    is_settled = bool(findings) and findings[0].culprit_confidence is Confidence.CONFIRMED
    return [item for item in unchecked if not (is_settled and item.about == "traces")]


def _ended_well(history: History) -> bool:
    return any(entry.finished for file in history.seen.files for entry in file.ranks.values())
