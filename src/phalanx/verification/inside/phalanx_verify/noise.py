"""Noise that the script draws itself, and the random states that samples are fetched with, in the rank and in its loader workers."""

from __future__ import annotations

import json
import os
import random
import sys
import zlib
from types import ModuleType
from typing import Any

from .chance import random_state
from .lines import line
from .observer import Observer, wrap

_DRAWING = ("randn", "rand", "randn_like", "rand_like", "bernoulli", "normal")
_SMALLEST = 8  # a few numbers may be a decision that all ranks are to take alike
_MOST_FETCHES = 4  # of a process that are told


def hook(observer: Observer) -> None:
    """See what is drawn from the rank's own random numbers, not from a generator of the script's."""
    import torch

    if observer.settings.sample:
        return

    def make(really: Any) -> Any:
        def draw(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or not observer.is_looking or kwargs.get("generator") is not None:
                return really(*args, **kwargs)
            state = 0
            with observer.guard:
                state = random_state()
            found = really(*args, **kwargs)
            with observer.guard:
                if found.numel() >= _SMALLEST:
                    observer.note("noise", what=really.__name__, rng=state, line=line())
            return found

        return draw

    for name in _DRAWING:
        known = torch.jit._builtins._find_builtin(getattr(torch, name))
        wrap(torch, name, make)
        if known is not None:  # a scripted function knows it by the object
            torch.jit._builtins._get_builtin_table()[id(getattr(torch, name))] = known


def hook_fetching(observer: Observer, module: ModuleType) -> None:
    """See each fetch of samples: from which states it began, and which of them it drew from."""
    if observer.settings.sample:
        return
    told: dict[int, int] = {}  # fetches of this process; a forked worker counts its own

    def make(really: Any) -> Any:
        def fetch(self: Any, *args: Any, **kwargs: Any) -> Any:
            here = os.getpid()
            if observer.is_broken or told.get(here, 0) >= _MOST_FETCHES:
                return really(self, *args, **kwargs)
            before: dict[str, int] = {}
            with observer.guard:
                told[here] = told.get(here, 0) + 1
                before = _states(self.dataset)
            found = really(self, *args, **kwargs)
            with observer.guard:
                after = _states(self.dataset)
                drew = {name: state for name, state in before.items() if after.get(name) != state}
                _tell(observer, told[here] - 1, drew)
            return found

        return fetch

    for kind in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        wrap(getattr(module, kind), "fetch", make)


def _states(dataset: Any) -> dict[str, int]:
    """A number for every source of random numbers within reach: the process's own, and generators that the dataset holds."""
    found = {"torch": random_state(), "python": zlib.crc32(repr(random.getstate()).encode())}
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        found["numpy"] = zlib.crc32(repr(_plain(numpy.random.get_state())).encode())
    for owner, depth in _owners(dataset):
        for name, value in list(getattr(owner, "__dict__", {}).items()):
            state = _state_of(value)
            if state is not None:
                found[f"dataset.{'dataset.' * depth}{name}"] = zlib.crc32(repr(state).encode())
    return found


def _owners(dataset: Any) -> list[tuple[Any, int]]:
    """The dataset, what it wraps, and its transform."""
    found: list[tuple[Any, int]] = []
    while dataset is not None and len(found) < 4:
        found.append((dataset, len(found)))
        transform = getattr(dataset, "transform", None)
        if transform is not None and not callable(getattr(transform, "__code__", None)):
            found.append((transform, len(found)))
        dataset = getattr(dataset, "dataset", None)
    return found


def _state_of(value: Any) -> Any:
    kind = type(value).__name__
    if kind == "Generator" and hasattr(value, "bit_generator"):
        return value.bit_generator.state
    if kind == "Generator" and hasattr(value, "get_state"):
        return bytes(value.get_state().numpy().data)
    if kind == "RandomState":
        return _plain(value.get_state())
    return value.getstate() if isinstance(value, random.Random) else None


def _plain(state: Any) -> Any:
    """NumPy shortens an array that it prints."""
    return [one.tobytes() if hasattr(one, "tobytes") else one for one in state]


def _tell(observer: Observer, number: int, drew: dict[str, int]) -> None:
    from torch.utils.data import get_worker_info

    info = get_worker_info()
    if info is None:
        observer.write("fetch", number=number, worker=None, begun=0, drew=drew)
        return
    # The rank's journal is its own: a worker writes beside it.
    record = {"k": "fetch", "number": number, "worker": info.id, "begun": info.seed - info.id, "drew": drew}
    path = os.path.join(observer.settings.folder, f"verify-worker-{os.getpid()}.jsonl")
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
