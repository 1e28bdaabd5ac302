"""Variables that contradict each other, or what the host has. One row of the table is one contradiction."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Sequence

from phalanx.check.agreement import several_hosts
from phalanx.check.options import CheckOptions
from phalanx.check.reading import Reading
from phalanx.check.witness import Witness, name_all
from phalanx.model import Unchecked


def _is_on(one: Witness, name: str) -> bool:
    """As strtoll reads it."""
    value = (one.variable(name) or "").strip()
    return value.lstrip("+-").isdigit() and int(value) != 0


def _ib_named_but_off(one: Witness) -> str | None:
    named = next((name for name in ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX") if one.variable(name)), None)
    return (
        f"NCCL_IB_DISABLE=1 switches off what {named}={one.variable(named)} sets"
        if named and _is_on(one, "NCCL_IB_DISABLE")
        else None
    )


def _net_ib_without_devices(one: Witness) -> str | None:
    wants = (one.variable("NCCL_NET") or "").upper() == "IB" or bool(one.variable("NCCL_IB_HCA"))
    has = one.section("limits").get("infiniband")
    if not wants or _is_on(one, "NCCL_IB_DISABLE") or has is None or has:
        return None
    name = "NCCL_NET" if one.variable("NCCL_NET") else "NCCL_IB_HCA"
    return f"{name}={one.variable(name)} wants InfiniBand, but there is no such device"


def _hca_missing(one: Witness) -> str | None:
    value, has = one.variable("NCCL_IB_HCA") or "", one.section("limits").get("infiniband") or []
    if not value or not has or value.startswith("^"):
        return None
    exact = value.startswith("=")
    wanted = [part.partition(":")[0] for part in value.lstrip("=").split(",") if part]
    missing = [part for part in wanted if not any(name == part if exact else name.startswith(part) for name in has)]
    return f"NCCL_IB_HCA={value} names {missing[0]}, but the devices are {', '.join(has)}" if missing else None


def _family_without_address(one: Witness) -> str | None:
    family = one.variable("NCCL_SOCKET_FAMILY")
    version = {"AF_INET": 4, "AF_INET6": 6}.get(family or "")
    if (
        version is None
        or not one.interfaces
        or any(ipaddress.ip_address(a).version == version for a in one.addresses())
    ):
        return None
    return f"NCCL_SOCKET_FAMILY={family}, but there is no such address"


def _mpi_both_lists(one: Witness) -> str | None:
    for part in ("btl_tcp_if", "oob_tcp_if"):
        if one.variable(f"OMPI_MCA_{part}_include") and one.variable(f"OMPI_MCA_{part}_exclude"):
            return f"OMPI_MCA_{part}_include and OMPI_MCA_{part}_exclude are both set, which Open MPI refuses"
    return None


def _visible_devices(one: Witness) -> str | None:
    value, local = one.variable("CUDA_VISIBLE_DEVICES"), one.variable("LOCAL_WORLD_SIZE") or ""
    if not value or not one.section("limits").get("gpus"):
        return None
    devices = [part.strip() for part in value.split(",")]
    if len(set(devices)) < len(devices):
        return f"CUDA_VISIBLE_DEVICES={value} names a device twice, and CUDA then shows none"
    if local.isdigit() and len(devices) < int(local) and len(devices) > 1:
        return f"CUDA_VISIBLE_DEVICES={value} shows {len(devices)} devices, but LOCAL_WORLD_SIZE is {local}"
    return None


def _threads(one: Witness) -> str | None:
    value = one.variable("OMP_NUM_THREADS")
    if value and not all(part.strip().isdigit() and int(part) > 0 for part in value.split(",")):
        return f"OMP_NUM_THREADS={value} is no number of threads, and OpenMP then takes all processors on every rank"
    return None


def _gloo_device(one: Witness) -> str | None:
    rank, size = one.variable("HOROVOD_RANK"), one.variable("HOROVOD_SIZE")
    if rank and size and rank.isdigit() and size.isdigit() and int(rank) >= int(size):
        return f"HOROVOD_RANK={rank}, but HOROVOD_SIZE={size}"
    return None


_CONTRADICTIONS: tuple[Callable[[Witness], str | None], ...] = (
    _ib_named_but_off,
    _net_ib_without_devices,
    _hca_missing,
    _family_without_address,
    _mpi_both_lists,
    _visible_devices,
    _threads,
    _gloo_device,
)


def examine(witnesses: Sequence[Witness], options: CheckOptions) -> Iterable[Reading | Unchecked]:
    """The same on several hosts is said once."""
    found: dict[str, list[str]] = {}
    for one in witnesses:
        for contradiction in _CONTRADICTIONS:
            if (text := contradiction(one)) is not None:
                found.setdefault(text, []).append(one.label)
        if several_hosts(witnesses) and (text := _only_inside(one)) is not None:
            found.setdefault(text, []).append(one.label)
    for text, labels in found.items():
        yield Reading(f"check: on {name_all(labels)} {text}", accused=tuple(labels), values={"what": text})


def _only_inside(one: Witness) -> str | None:
    """Transports that do not leave the host."""
    transports = (one.variable("OMPI_MCA_btl") or "").split(",")
    if (
        transports != [""]
        and not transports[0].startswith("^")
        and set(transports) <= {"self", "sm", "vader", "smcuda"}
    ):
        return f"OMPI_MCA_btl={','.join(transports)} has no transport between hosts"
    ucx = (one.variable("UCX_TLS") or "").split(",")
    inside = {"self", "sm", "shm", "posix", "sysv", "cma", "knem", "xpmem", "cuda_copy", "cuda_ipc", "cuda", "mm"}
    if ucx != [""] and not ucx[0].startswith("^") and set(ucx) <= inside:
        return f"UCX_TLS={','.join(ucx)} has no transport between hosts"
    return None
