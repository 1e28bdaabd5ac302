"""Who looks for the others at another address than they, from the arguments of PyTorch's rendezvous in the ranks' stacks."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.run.watch.dissent import Dissent, differs, each_side, odd_of, sides_of
from phalanx.run.watch.stacks import ProcessStacks

_RENDEZVOUS = "torch/distributed/rendezvous.py"
_STORE = "_create_c10d_store"
_C10D = "torch/distributed/distributed_c10d.py"
_AFTER = ("_new_process_group_helper", "_store_based_barrier")  # who is here has found the store


def find_stranger(stacks: Mapping[int, ProcessStacks], size: int) -> Dissent | None:
    """Ranks that wait at another address than most; None where all that are known wait at one. Those that found the store already
    use the address at which rank 0 keeps it."""
    addresses: dict[int, str] = {}
    inside: set[int] = set()
    for rank, one in stacks.items():
        main = one.main
        for frame, told in zip(main.frames, main.values, strict=False) if main is not None else ():
            if frame.path.endswith(_RENDEZVOUS) and frame.function == _STORE and told.get("port", "").isdecimal():
                addresses[rank] = f"{told.get('hostname', '').strip(chr(34) + chr(39))}:{told['port']}"
            if frame.path.endswith(_C10D) and frame.function in _AFTER:
                inside.add(rank)
    if not differs(addresses):
        return None
    if 0 in addresses:
        addresses |= dict.fromkeys(inside - addresses.keys(), addresses[0])
    text = f"different addresses to meet at: {sides_of(addresses, 'uses', 'use')}"
    fields = {"what": "addresses to meet at", "sides": each_side(addresses, "uses", "use")}
    return Dissent(odd_of(addresses, size), text, "address", fields)
