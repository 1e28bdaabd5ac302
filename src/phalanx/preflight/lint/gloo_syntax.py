"""NCCL's way of naming interfaces (`^docker0`, `=eth0`, prefixes) given to libraries that take exact names only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.advertised import nccl_admits
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

_EXACT = {"GLOO_SOCKET_IFNAME": "Gloo", "HOROVOD_GLOO_IFACE": "Horovod's Gloo", "TP_SOCKET_IFNAME": "TensorPipe"}


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """With the interface that NCCL would have taken, to write instead."""
    seen: set[tuple[str, str, str]] = set()
    for one in all_facts:
        for variable, library in _EXACT.items():
            value = one.variable(variable) or ""
            if value[:1] not in ("^", "=") or (one.host, variable, value) in seen:
                continue
            seen.add((one.host, variable, value))
            meant = [
                name
                for name, facts in one.interfaces.items()
                if nccl_admits(value, name) and facts["up"] and facts["addresses"] and not facts["loopback"]
            ]
            right = meant[0] if meant else "eth0"
            yield observe(
                "nccl-syntax-for-gloo", (one.label,), variable=variable, value=value, library=library, right=right
            )
