"""TORCH_DISTRIBUTED_DEBUG=DETAIL where it is known to end the job by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

_CRASHING = ("2.13.0+cpu",)  # DistributedDataParallel's constructor dies of a segmentation fault


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """By the version of PyTorch that is installed on the host."""
    found: dict[str, list[str]] = {}
    for one in all_facts:
        version = str(one.section("versions").get("packages", {}).get("torch") or "")
        if (one.variable("TORCH_DISTRIBUTED_DEBUG") or "").upper() == "DETAIL" and version in _CRASHING:
            found.setdefault(version, []).append(one.label)
    for version, labels in found.items():
        yield observe("debug-detail-crashes", tuple(labels), version=version)
