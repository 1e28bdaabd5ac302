"""Variables that contradict each other, or what the host has. One function is one contradiction: the field that tells it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from phalanx.model import Unchecked
from phalanx.preflight.agreement import several_hosts
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

Told = Mapping[str, Any]


def _is_on(one: HostFacts, name: str) -> bool:
    """As strtoll reads it."""
    value = (one.variable(name) or "").strip()
    return value.lstrip("+-").isdigit() and int(value) != 0


def _ib_named_but_off(one: HostFacts) -> Told:
    named = next((name for name in ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX") if one.variable(name)), None)
    if named is None or not _is_on(one, "NCCL_IB_DISABLE"):
        return {}
    return {"switched_off": f"{named}={one.variable(named)}"}


def _net_ib_without_devices(one: HostFacts) -> Told:
    wants = (one.variable("NCCL_NET") or "").upper() == "IB" or bool(one.variable("NCCL_IB_HCA"))
    has = one.section("limits").get("infiniband")
    if not wants or _is_on(one, "NCCL_IB_DISABLE") or has is None or has:
        return {}
    name = "NCCL_NET" if one.variable("NCCL_NET") else "NCCL_IB_HCA"
    return {"no_infiniband": f"{name}={one.variable(name)}"}


def _hca_missing(one: HostFacts) -> Told:
    value, has = one.variable("NCCL_IB_HCA") or "", one.section("limits").get("infiniband") or []
    if not value or not has or value.startswith("^"):
        return {}
    exact = value.startswith("=")
    wanted = [part.partition(":")[0] for part in value.lstrip("=").split(",") if part]
    missing = [part for part in wanted if not any(name == part if exact else name.startswith(part) for name in has)]
    return {"hca": value, "hca_missing": missing[0], "devices": ", ".join(has)} if missing else {}


def _family_without_address(one: HostFacts) -> Told:
    family = one.variable("NCCL_SOCKET_FAMILY")
    version = {"AF_INET": 4, "AF_INET6": 6}.get(family or "")
    if (
        version is None
        or not one.interfaces
        or any(ipaddress.ip_address(a).version == version for a in one.addresses())
    ):
        return {}
    return {"family": family or ""}


def _mpi_both_lists(one: HostFacts) -> Told:
    for part in ("btl_tcp_if", "oob_tcp_if"):
        if one.variable(f"OMPI_MCA_{part}_include") and one.variable(f"OMPI_MCA_{part}_exclude"):
            return {"both_lists": f"OMPI_MCA_{part}"}
    return {}


def _visible_devices(one: HostFacts) -> Told:
    value, local = one.variable("CUDA_VISIBLE_DEVICES"), one.variable("LOCAL_WORLD_SIZE") or ""
    if not value or not one.section("limits").get("gpus"):
        return {}
    devices = [part.strip() for part in value.split(",")]
    if len(set(devices)) < len(devices):
        return {"device_twice": value}
    if local.isdigit() and len(devices) < int(local) and len(devices) > 1:
        return {"few_devices": value, "shown": str(len(devices)), "local": local}
    return {}


def _threads(one: HostFacts) -> Told:
    value = one.variable("OMP_NUM_THREADS")
    if value and not all(part.strip().isdigit() and int(part) > 0 for part in value.split(",")):
        return {"threads": value}
    return {}


def _gloo_device(one: HostFacts) -> Told:
    rank, size = one.variable("HOROVOD_RANK"), one.variable("HOROVOD_SIZE")
    if rank and size and rank.isdigit() and size.isdigit() and int(rank) >= int(size):
        return {"horovod_rank": rank, "horovod_size": size}
    return {}


_CONTRADICTIONS: tuple[Callable[[HostFacts], Told], ...] = (
    _ib_named_but_off,
    _net_ib_without_devices,
    _hca_missing,
    _family_without_address,
    _mpi_both_lists,
    _visible_devices,
    _threads,
    _gloo_device,
)


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """The same on several hosts is said once."""
    found: dict[tuple[tuple[str, Any], ...], list[str]] = {}
    looked_for = (*_CONTRADICTIONS, _only_inside) if several_hosts(all_facts) else _CONTRADICTIONS
    for one in all_facts:
        for contradiction in looked_for:
            if told := contradiction(one):
                found.setdefault(tuple(told.items()), []).append(one.label)
    for fields, labels in found.items():
        yield observe("variables-contradict", tuple(labels), **dict(fields))


def _only_inside(one: HostFacts) -> Told:
    """Transports that do not leave the host."""
    transports = (one.variable("OMPI_MCA_btl") or "").split(",")
    if (
        transports != [""]
        and not transports[0].startswith("^")
        and set(transports) <= {"self", "sm", "vader", "smcuda"}
    ):
        return {"inside_only": f"OMPI_MCA_btl={','.join(transports)}"}
    ucx = (one.variable("UCX_TLS") or "").split(",")
    inside = {"self", "sm", "shm", "posix", "sysv", "cma", "knem", "xpmem", "cuda_copy", "cuda_ipc", "cuda", "mm"}
    if ucx != [""] and not ucx[0].startswith("^") and set(ucx) <= inside:
        return {"inside_only": f"UCX_TLS={','.join(ucx)}"}
    return {}
