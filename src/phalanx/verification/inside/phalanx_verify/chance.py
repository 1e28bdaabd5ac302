"""Seeds that the script sets, and where the random numbers stand."""

from __future__ import annotations

import zlib
from types import ModuleType
from typing import Any

from .lines import caller, line
from .observer import Observer, wrap


def random_state() -> int:
    """A number for PyTorch's random state; equal on two ranks only if they draw the same numbers next."""
    import torch

    return zlib.crc32(torch.get_rng_state().numpy().data)


def hook(observer: Observer) -> None:
    """See `torch.manual_seed` and `random.seed`."""
    import random

    import torch

    _follow(observer, torch.random, "manual_seed", "torch")
    torch.manual_seed = torch.random.manual_seed
    _follow(observer, random, "seed", "python")


def hook_numpy(observer: Observer, module: ModuleType) -> None:
    """See `numpy.random.seed`."""
    _follow(observer, module, "seed", "numpy")


def _follow(observer: Observer, owner: Any, name: str, what: str) -> None:
    def make(really: Any) -> Any:
        def seed(*args: Any, **kwargs: Any) -> Any:
            with observer.guard:
                given = args[0] if args else next(iter(kwargs.values()), None)
                value = given if isinstance(given, int) else str(given)[:40]
                observer.write("seed", what=what, value=value, line=line(), by=caller())
            return really(*args, **kwargs)

        return seed

    wrap(owner, name, make)
