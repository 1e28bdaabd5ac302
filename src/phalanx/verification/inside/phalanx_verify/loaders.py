"""Data: which samples each rank takes from which loader, in which epoch."""

from __future__ import annotations

import weakref
from types import ModuleType
from typing import Any

from .contents import contents
from .lines import line
from .marks import mark_of, rows_of
from .observer import Observer, wrap

_MOST_BATCHES = 3000  # of all loaders that are told one by one
_MOST_INDICES = 4096  # of one batch


class Loaders:
    """Numbers for them, in the order of their first use."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._epochs: dict[int, int] = {}
        self._told = 0
        self._most = 3 if observer.settings.sample else _MOST_BATCHES

    def begun(self, loader: Any) -> int:
        """An iteration begins; `e` counts them for each loader."""
        known = self._numbers.get(id(loader))
        if known is None or known[0]() is not loader:
            known = self._numbers[id(loader)] = weakref.ref(loader), len(self._epochs)
            self._epochs[known[1]] = 0
            held = None if self.observer.settings.sample else contents(loader.dataset)
            self.observer.write("loader", l=known[1], content=held, **_described(loader))
        number = known[1]
        epoch = self._epochs[number]
        self._epochs[number] += 1
        sampler = _sampler(loader)
        told = self.observer.settings
        if told.epochs and epoch >= told.epochs and self.observer.step:
            self.observer.end_run("epochs")
        self.observer.write("epoch", l=number, e=epoch, set_epoch=getattr(sampler, "epoch", None), line=line())
        return number

    def ordered(self, iterator: Any, chosen: Any) -> None:
        """The sampler has chosen a batch, which comes later."""
        if self._told >= self._most:
            return
        indices = list(chosen) if isinstance(chosen, (list, tuple)) else [chosen]
        if all(isinstance(one, int) for one in indices):
            chosen_before = getattr(iterator, "_phalanx_chosen", None)
            if chosen_before is None:
                chosen_before = iterator._phalanx_chosen = []  # workers fetch ahead: these are still to come
            chosen_before.append(indices[:_MOST_INDICES])

    def arrived(self, iterator: Any, batch: Any, number: int, epoch: int) -> None:
        """A batch goes to the script."""
        waiting = getattr(iterator, "_phalanx_chosen", None)
        indices = waiting.pop(0) if waiting else None
        if self._told < self._most:
            self._told += 1
            self.observer.write("batch", l=number, e=epoch, ids=indices, mark=mark_of(batch), rows=rows_of(batch))

    def epoch_of(self, number: int) -> int:
        """The iteration under way."""
        return self._epochs[number] - 1


def _sampler(loader: Any) -> Any:
    """The sampler that decides: that of a batch sampler, or the loader's own."""
    found = getattr(loader, "sampler", None)
    return getattr(getattr(loader, "batch_sampler", None), "sampler", found) or found


def _described(loader: Any) -> dict[str, Any]:
    sampler = _sampler(loader)
    try:
        length = len(loader.dataset)
    except (TypeError, AttributeError, NotImplementedError):
        length = None
    told = {
        name: getattr(sampler, name)
        for name in ("num_replicas", "rank", "shuffle", "drop_last", "seed")
        if hasattr(sampler, name)
    }
    told |= _dealt_in_batches(loader)
    return {
        "line": line(),
        "made": getattr(loader, "_phalanx_line", ""),
        "sampler": type(sampler).__name__,
        "told": {name: value if isinstance(value, (int, bool)) else str(value) for name, value in told.items()},
        "dataset": type(loader.dataset).__name__,
        "length": length,
        "batch_size": loader.batch_size or _whole(getattr(loader.batch_sampler, "batch_size", None)),
        "drop_last": bool(loader.drop_last),
        "workers": int(loader.num_workers),
        "iterable": hasattr(loader, "_dataset_kind") and loader._dataset_kind != 0,
    }


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _dealt_in_batches(loader: Any) -> dict[str, Any]:
    """Accelerate deals whole batches out, behind a sampler that knows nothing of it."""
    dealer: Any = getattr(loader, "batch_sampler", None)
    if type(dealer).__name__ != "BatchSamplerShard":
        return {}
    return {"num_replicas": dealer.num_processes, "rank": dealer.process_index, "in_batches": True}


def hook(observer: Observer, module: ModuleType) -> None:
    """See loaders begun and every batch."""
    loaders = observer.parts["loaders"] = Loaders(observer)
    iterator = module._BaseDataLoaderIter

    def init_of(really: Any) -> Any:
        def construct(self: Any, *args: Any, **kwargs: Any) -> None:
            really(self, *args, **kwargs)
            with observer.guard:
                self._phalanx_line = line()

        return construct

    def begin_of(really: Any) -> Any:
        def begin(self: Any) -> Any:
            number = -1
            with observer.guard:
                number = loaders.begun(self)
                if getattr(self, "_iterator", None) is not None:  # workers that persist begin anew
                    self._iterator._phalanx_chosen = []
            made = really(self)
            if number >= 0:
                made._phalanx_loader = number, loaders.epoch_of(number)
            return made

        return begin

    def next_of(really: Any) -> Any:
        def following(self: Any) -> Any:
            known = getattr(self, "_phalanx_loader", None)
            try:
                batch = really(self)
            except StopIteration:
                if known is not None and not observer.is_broken:
                    with observer.guard:
                        observer.write("exhausted", l=known[0], e=known[1])
                raise
            if known is not None and not observer.is_broken:
                with observer.guard:
                    batch = observer.parts["batches"].exchanged(known[0], batch)
                    loaders.arrived(self, batch, *known)
            return batch

        return following

    def order_of(really: Any) -> Any:
        def _next_index(self: Any) -> Any:
            chosen = really(self)
            with observer.guard:
                loaders.ordered(self, chosen)
            return chosen

        return _next_index

    wrap(module.DataLoader, "__init__", init_of)
    wrap(module.DataLoader, "__iter__", begin_of)
    wrap(iterator, "__next__", next_of)
    wrap(iterator, "_next_index", order_of)
