"""Which devices the ranks of a node see when each is to have so many."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from phalanx.frameworks.launching import has_own_devices, load_launchable
from phalanx.run.plan import PlanError

_DEVICES = Path("/dev")


def devices_for(
    gpus: int | None, ranks: int, framework: str, environment: Mapping[str, str], where: Path = _DEVICES
) -> str | None:
    """In the words of `phalanx run --devices`; None leaves devices alone. What the engine gave this node is shared out; where
    it said nothing, the node's devices from the first. Raises PlanError where there are too few."""
    if gpus is None:
        return None
    if gpus == 0:
        return "none"
    needed = gpus * ranks
    given = [one for one in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if one.strip()]
    there = given or [str(number) for number in range(_count(where))]
    if len(there) < needed:
        told = "CUDA_VISIBLE_DEVICES" if given else "its device files"
        raise PlanError(
            f"{gpus} for each of {ranks} workers are {needed} devices, but this node has {len(there)} by {told}"
        )
    shares = [there[rank * gpus : (rank + 1) * gpus] for rank in range(ranks)]
    if gpus == 1 and not has_own_devices(load_launchable()[framework]):
        return ",".join(there[:needed])  # its ranks choose by their local number among all
    return "/".join(",".join(share) for share in shares) if ranks > 1 else ",".join(shares[0])


def _count(where: Path) -> int:
    """NVIDIA's devices, else AMD's."""
    nvidia = [path for path in where.glob("nvidia[0-9]*") if path.name[6:].isdigit()]
    return len(nvidia) or len(list(where.glob("dri/renderD*")) if (where / "kfd").exists() else [])
