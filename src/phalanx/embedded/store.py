"""Inside a rank: where the companion beside rank 0 listens goes round by the store in which the ranks themselves found each other."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from phalanx import private
from phalanx.embedded.folders import CALLS, LISTENS, NODES
from phalanx.embedded.identity import Place

_SOON_S, _LOOK_S = 0.1, 1.0  # between two looks: while the job begins, and later
_BEGINS_S = 60.0


def exchange(bundle: Path, place: Place) -> None:
    """For a thread of rank 0, and of one rank on every other node. Ends when it is told, or with the store."""
    if place.here is not None and place.here >= place.size:
        return
    with contextlib.suppress(Exception):  # a store that is gone ends the job soon enough, and is not ours to mourn
        store, key = _own_line(), f"phalanx/{place.digest}"
        host = os.uname().nodename
        if place.rank == 0:
            store.set(key, _awaited(bundle / NODES / LISTENS.format(host)))
            return
        for pause in _pauses():
            if store.check([key]):
                break
            time.sleep(pause)
        part = bundle / NODES / f".{host}.part"
        private.write_bytes(part, store.get(key))
        part.replace(bundle / NODES / CALLS.format(host))


def _own_line() -> Any:
    """A connection of our own to the store: a rank that waits for a key holds the lock of its own. PyTorch 2.6 and later can do that."""
    distributed: Any = sys.modules.get("torch.distributed")
    while distributed is None or not getattr(distributed, "is_initialized", bool)():
        time.sleep(_SOON_S)
        distributed = sys.modules.get("torch.distributed")
    store = distributed.distributed_c10d._get_default_store()
    while (below := getattr(store, "underlying_store", None)) is not None:
        store = below
    return store.clone()


def _awaited(file: Path) -> bytes:
    for pause in _pauses():
        with contextlib.suppress(FileNotFoundError):
            return file.read_bytes()
        time.sleep(pause)
    raise AssertionError


def _pauses() -> Iterator[float]:
    begun = time.monotonic()
    while True:
        yield _SOON_S if time.monotonic() - begun < _BEGINS_S else _LOOK_S
