"""Follows a training loop without a line in it: steps by the optimizers, data by the loaders, DDP by its constructor."""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable
from typing import Any

from .dispatch import keep_from_compiler
from .fingerprints import of_memory
from .memory import Bytes

_MOST_BYTES = 8 * 1024 * 1024  # of a batch; of a larger tensor evenly spread pieces are taken
_MOST_INDICES = 512


followed: list[Training] = []  # this process's, for scripts that count their steps themselves


class Training:
    """What is known of the loop. `step` counts finished optimizer steps, so it is the number of the running pass from 0."""

    def __init__(self) -> None:
        self.step = 0
        self.optimizers: list[weakref.ref[Any]] = []
        self.wrapped: list[weakref.ref[Any]] = []  # modules in DDP
        self._numbers: dict[int, int] = {}  # of living optimizers, in the order of their first steps
        self._in_pass: set[int] = set()  # those that have stepped in the running pass
        self._seen = 0
        self._depth: dict[int, int] = {}
        self.on_step: list[Callable[[int], None]] = []
        self.on_batch: list[
            Callable[[str, int, Any], None]
        ] = []  # kind (batch, order, model-input), loader's number, what
        self.on_epoch: list[Callable[[int], None]] = []
        self._loaders = 0
        self.notes_buckets = False
        self.buckets: list[
            list[tuple[str, int]]
        ] = []  # names and sizes in DDP's buckets, as far as they were asked for

    def follow(self) -> None:
        """Install what is needed, once."""
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        followed.append(self)
        register_optimizer_step_pre_hook(self._stepping)
        register_optimizer_step_post_hook(self._stepped)
        for hook in (Training._entered, Training._note_rebuilt):
            keep_from_compiler(hook)
        self._follow_loaders()
        self._follow_ddp()

    def _stepping(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._depth[id(optimizer)] = self._depth.get(id(optimizer), 0) + 1

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        key = id(optimizer)
        self._depth[key] = self._depth.get(key, 1) - 1
        if self._depth[key] > 0:
            return  # a wrapper's step, such as Horovod's, calls the real one
        if key not in self._numbers:
            self.optimizers.append(weakref.ref(optimizer, lambda _: self._forget(key)))
            self._seen += 1
            self._numbers[key] = self._seen
        number = self._numbers[key]
        if self._in_pass and number not in self._in_pass:
            self._in_pass.add(number)  # several optimizers in one pass count once
            return
        self._in_pass = {number}
        self.count(self.step + 1)

    def count(self, step: int) -> None:
        """So many steps are done."""
        if step > self.step:
            self.step = step
            for act in self.on_step:
                act(step)

    def _forget(self, key: int) -> None:
        """An optimizer is gone. Another one may come to lie where it lay."""
        self._numbers.pop(key, None)
        self._depth.pop(key, None)

    def _follow_loaders(self) -> None:
        from torch.utils.data import dataloader

        iterator, training = dataloader._BaseDataLoaderIter, self
        make, following, ordering = dataloader.DataLoader.__iter__, iterator.__next__, iterator._next_index

        def begin(loader: Any) -> Any:
            training._loaders += 1
            for act in training.on_epoch:
                act(training._loaders)
            return make(loader)

        def take(self: Any) -> Any:
            batch = following(self)
            for act in training.on_batch:
                act("batch", training._loaders, batch)
            return batch

        def order(self: Any) -> Any:
            chosen = ordering(self)
            if isinstance(chosen, (list, tuple)):
                for act in training.on_batch:
                    act("order", training._loaders, chosen)
            return chosen

        dataloader.DataLoader.__iter__ = begin
        iterator.__next__ = take
        iterator._next_index = order

    def _follow_ddp(self) -> None:
        from torch.nn.parallel import DistributedDataParallel

        construct, training = DistributedDataParallel.__init__, self

        def made(self: Any, *args: Any, **kwargs: Any) -> None:
            construct(self, *args, **kwargs)
            training.wrapped.append(weakref.ref(self))
            self.register_forward_pre_hook(training._entered, with_kwargs=True)
            if training.notes_buckets:
                training._note_buckets(self)
                self.register_forward_hook(training._note_rebuilt)

        DistributedDataParallel.__init__ = made

    def _note_rebuilt(self, module: Any, args: Any, output: Any) -> None:
        if self.step == 1:  # DDP has laid them out anew on entering its second pass
            self._note_buckets(module)

    def _note_buckets(self, model: Any) -> None:
        """Ask now: during the backward pass DDP holds a lock, and asking would never end."""
        names = {id(one): name for name, one in model.module.named_parameters()}
        self.buckets += [[(names.get(id(one), "?"), one.numel()) for one in bucket] for bucket in buckets_of(model)]

    def _entered(self, module: Any, args: Any, kwargs: Any) -> None:
        for act in self.on_batch:
            act("model-input", 0, (args, kwargs))


def buckets_of(model: Any) -> list[list[Any]]:
    """The parameters of each of DDP's buckets, in order. Takes the memory of all gradients once more, so not on devices."""
    if any(one.device.type != "cpu" for one in model.module.parameters()):
        return []
    try:
        return [list(bucket.parameters()) for bucket in model.reducer._get_zeros_like_grad_buckets()]
    except Exception:  # a private interface: without it the bucket is named, its parameters are not
        return []


def mark_of(kind: str, batch: Any) -> str:
    """The samples chosen (`order`), or a fingerprint of a batch's tensors, however they are packed, and of the numbers and texts between."""
    if kind == "order":
        return ",".join([str(one) for one in batch[:_MOST_INDICES]])
    total = 0
    for place, item in enumerate(_leaves(batch)):
        total = (total * 0x100000001B3 + place + _mark(item)) & (1 << 64) - 1
    return f"{total:016x}"


def _mark(item: Any) -> int:
    if hasattr(item, "data_ptr"):
        if item.device.type not in ("cpu", "cuda") or str(item.layout) != "torch.strided":
            return 0
        if item.nbytes > _MOST_BYTES:
            item = item.detach().reshape(-1)[:: item.nbytes // _MOST_BYTES + 1].contiguous()
        held = Bytes(item)
        return of_memory(held.address, held.size, False)[0]
    return zlib.crc32(repr(item).encode()) if isinstance(item, (int, float, str, bytes, bool)) else 0


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def layouts_of(training: Training) -> list[dict[str, Any]]:
    """How DDP groups its parameters, by its own account, and what they are called."""
    found: list[dict[str, Any]] = []
    for reference in training.wrapped:
        model = reference()
        if model is not None:
            rows = [(name, one) for name, one in model.module.named_parameters() if one.requires_grad]
            places = {id(one): place for place, (_, one) in enumerate(rows)}
            found.append(
                {
                    "parameters": [[name, one.numel()] for name, one in rows],
                    "buckets": [[places.get(id(one), -1) for one in bucket] for bucket in buckets_of(model)],
                }
            )
    return found
