"""TensorFlow: every task finds the cluster and its own place in TF_CONFIG."""

import json
import re

from phalanx.frameworks.launching import Meeting, Seat

NAME = "tensorflow"
SIGNS = re.compile(r"\btensorflow\b|\btf\.(?:distribute|function|data|Session|train|config|keras|estimator|contrib)\b|\bTF_CONFIG\b|MirroredStrategy", re.I)  # fmt: skip
OUTRANKS: tuple[str, ...] = ("torch",)
IMPORTS = ("tensorflow",)
OWN_DEVICES = True


def ports_needed(size: int) -> int:
    """Every task listens; an evaluator does not, but one port too many hurts nobody."""
    return size


def variables(seat: Seat, meeting: Meeting) -> dict[str, str]:
    """TF_CONFIG. A job of one worker gets none: a strategy for one machine does not want it."""
    if seat.size < 2:
        return {}
    cluster: dict[str, list[str]] = {}
    for other in meeting.roles:
        if other.role != "evaluator":  # it stands outside of the cluster and only reads checkpoints
            cluster.setdefault(other.role, []).append(f"{meeting.host_of(other.rank)}:{meeting.ports[other.rank]}")
    task = {"type": seat.role, "index": seat.index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}
