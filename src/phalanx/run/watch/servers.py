"""Finds in a job with parameter servers who should serve and does not: the others can only wait for it."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.model import Frame
from phalanx.model.ranks import name_ranks
from phalanx.run.watch.dissent import Dissent
from phalanx.run.watch.stacks import ProcessStacks

_SERVER = "tensorflow/python/training/server_lib.py"


def find_idle_server(
    stacks: Mapping[int, ProcessStacks], roles: Mapping[int, str], ended: Mapping[int, int]
) -> Dissent | None:
    """Parameter servers, and workers under a chief, that live and are not in `server.join()`; None where all serve, or nothing is known."""
    kinds = {role.split(" ")[0] for role in roles.values()}
    if "ps" not in kinds:
        return None
    serving = {"ps", "worker"} if "chief" in kinds else {"ps"}
    servers = [rank for rank, role in roles.items() if role.split(" ")[0] in serving and rank not in ended]
    mains = {rank: stacks[rank].main for rank in servers if rank in stacks}
    frames = {rank: main.frames for rank, main in mains.items() if main is not None and main.frames}
    idle = sorted(rank for rank, found in frames.items() if not any(frame.path.endswith(_SERVER) for frame in found))
    if not idle or len(frames) < len(servers) or len(idle) * 2 > len(roles):
        return None
    waiting = [rank for rank in stacks if rank not in idle]
    where = ", ".join(dict.fromkeys(_at(frames[rank]) for rank in idle))
    text = (
        f"{name_ranks(idle)} never served: {where}; {name_ranks(waiting)} wait{'s' if len(waiting) == 1 else ''} for it"
    )
    return Dissent(frozenset(idle), text, "serving", {"serving": f"never served: it is {where}"})


def _at(frames: tuple[Frame, ...]) -> str:
    own = next((frame for frame in reversed(frames) if frame.is_user_code), frames[-1])
    return f"in {own.function}() at {own.place}" if not own.function.startswith("<") else f"at {own.place}"
