"""Batches kept on disk in one run and given to another: so one process can be fed what several ranks were fed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .observer import Observer

_LARGEST = 256 << 20  # bytes of all batches that a rank keeps


class Batches:
    """Keeps the first batches of each loader, or gives the joined ones of another run in their place."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._counts: dict[int, int] = {}
        self._kept = 0

    def exchanged(self, loader: int, batch: Any) -> Any:
        """The batch that goes to the script."""
        told = self.observer.settings
        if not told.keep and not told.give:
            return batch
        number = self._counts[loader] = self._counts.get(loader, -1) + 1
        if told.keep and number < told.keep:
            self._keep(loader, number, batch)
        if not told.give:
            return batch
        found = [os.path.join(folder, "batches", f"{loader}-{number}.pt") for folder in told.give]
        if not all(map(os.path.exists, found)):
            return batch
        import torch

        load = getattr(torch.load, "__wrapped__", torch.load)  # not a load of the script's
        joined = joined_of([load(path, weights_only=True) for path in found])
        self.observer.write("given", l=loader, number=number)
        return joined

    def _keep(self, loader: int, number: int, batch: Any) -> None:
        import torch

        size = sum(leaf.numel() * leaf.element_size() for leaf in _tensors(batch))
        if self._kept + size > _LARGEST or not _is_plain(batch):
            return
        self._kept += size
        folder = os.path.join(self.observer.settings.folder, "batches")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, f"{loader}-{number}.pt")
        with open(path + ".part", "wb") as file:
            getattr(torch.save, "__wrapped__", torch.save)(batch, file)  # not a save of the script's
        os.replace(path + ".part", path)


def _tensors(value: Any) -> list[Any]:
    from .marks import leaves

    return [leaf for leaf in leaves(value) if hasattr(leaf, "data_ptr")]


def _is_plain(value: Any) -> bool:
    """What can be read back without a class of the script's."""
    if isinstance(value, dict):
        return all(_is_plain(one) for one in value.values())
    if type(value) in (list, tuple):
        return all(_is_plain(one) for one in value)
    return type(value).__name__ == "Tensor" or isinstance(value, (int, float, str, bool, type(None)))


def joined_of(parts: Sequence[Any]) -> Any:
    """The same structure with the rows of all parts, one behind the other. Raises ValueError where they do not fit."""
    first = parts[0]
    if isinstance(first, dict):
        return {key: joined_of([part[key] for part in parts]) for key in first}
    if type(first) in (list, tuple):
        if all(isinstance(one, (str, int, float)) for part in parts for one in part):
            return type(first)(one for part in parts for one in part)
        if any(len(part) != len(first) for part in parts):
            raise ValueError("batches of different structure")
        return type(first)(joined_of(column) for column in zip(*parts))
    if hasattr(first, "data_ptr") and first.dim() > 0:
        import torch

        return torch.cat(list(parts))
    return first


def hook(observer: Observer) -> None:
    """Make it known to the loaders."""
    observer.parts["batches"] = Batches(observer)
