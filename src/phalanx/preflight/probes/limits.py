"""Limits that a job of several processes runs into: open files, processes, locked memory, shared memory, the container's memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from phalanx.model import Unchecked
from phalanx.preflight.agreement import world_size
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

_USUAL_FILES = 1024  # what Linux gives by default: less was chosen by somebody
_FILES_OF_A_RANK = 256  # libraries, data, logs
_FILES_OF_A_PEER = 4  # connections of the groups with each other rank
_FEW_PROCESSES = 512
_SMALL_SHM = 128 << 20  # containers get 64 MiB unless told otherwise
_LITTLE_SHM_LEFT = 32 << 20
_LITTLE_MEMORY = 512 << 20
_LOCKED = 64 << 20
_SMALL_ADDRESS_SPACE = 64 << 30  # frameworks and CUDA map far more than they use


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Host by host; ranks that share a host and its limits say it once."""
    size = world_size(all_facts) or len(all_facts)
    seen: set[tuple[str, str]] = set()
    for one in all_facts:
        limits = one.section("limits")
        if not limits:
            continue
        for check_fact in _of(one, limits, size):
            key = (one.host, f"{check_fact.fact.id} {sorted(check_fact.fact.fields.items())}")
            if key not in seen:
                seen.add(key)
                yield check_fact


def _of(one: HostFacts, limits: Any, size: int) -> Iterable[CheckFact]:
    yield from _files(one, limits, size)
    processes, hard = limits.get("nproc") or (None, None)
    if processes is not None and processes < _FEW_PROCESSES and one.section("who").get("uid") != 0:
        yield observe("process-limit", (one.label,), soft=processes, value=hard or 65536)
    address, _ = limits.get("address") or (None, None)
    if address is not None and address < _SMALL_ADDRESS_SPACE:
        yield observe("address-space-limit", (one.label,), size=_size(address))
    locked, _ = limits.get("memlock") or (None, None)
    if limits.get("infiniband") and locked is not None and locked < _LOCKED and one.section("who").get("uid") != 0:
        devices = ", ".join(limits["infiniband"][:3])
        yield observe("locked-memory-small", (one.label,), size=_size(locked), devices=devices)
    yield from _shared_memory(one, limits)
    group = limits.get("group") or {}
    if group.get("memory") is not None and group.get("memory_used") is not None:
        left = group["memory"] - group["memory_used"]
        if left < _LITTLE_MEMORY:
            yield observe("container-memory-low", (one.label,), left=_size(max(left, 0)), limit=_size(group["memory"]))


def _files(one: HostFacts, limits: Any, size: int) -> Iterable[CheckFact]:
    soft, hard = limits.get("nofile") or (None, None)
    needed = _FILES_OF_A_RANK + _FILES_OF_A_PEER * size
    if soft is not None and soft < max(_USUAL_FILES, needed):
        allowed = 65536 if hard is None else min(hard, 1048576)
        wanted = max(needed, _USUAL_FILES)
        yield observe(
            "open-files-limit",
            (one.label,),
            soft=soft,
            size=size,
            needed=wanted,
            value=max(allowed, soft),
            allowed=allowed if allowed > soft else None,
            beyond=allowed < wanted,
        )


def _shared_memory(one: HostFacts, limits: Any) -> Iterable[CheckFact]:
    shm = limits.get("shm")
    if shm is None:
        yield observe("shared-memory-small", (one.label,), absent=True)
    elif shm["read_only"]:
        yield observe("shared-memory-small", (one.label,), read_only=True, size=_size(shm["size"]))
    elif shm["size"] < _SMALL_SHM:
        yield observe("shared-memory-small", (one.label,), small=True, size=_size(shm["size"]))
    elif shm["free"] < _LITTLE_SHM_LEFT:
        yield observe("shared-memory-small", (one.label,), left=_size(shm["free"]), size=_size(shm["size"]))


def _size(count: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"
