"""Horovod for PyTorch: its operations go through one native module, for which a stand-in records or answers them."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .alone import load_plain
from .arrival import Act
from .calls import Group, Kind
from .memory import UnsupportedError
from .settings import Settings

_ASYNC = re.compile(r"horovod_torch_(?:grouped_)?(allreduce|allgather|broadcast|alltoall|reducescatter)_async_")
# Where the arguments of each operation stand: what it gets, and its name.
_PLACES = {"allreduce": (1, 3), "allgather": (1, 2), "broadcast": (1, 3), "alltoall": (2, 4), "reducescatter": (1, 2)}
_ALIKE = ("allreduce", "allgather", "broadcast")
_MODULE = "horovod.torch.mpi_ops"


class HorovodCall:
    """One operation, in the form that the recorder knows."""

    is_async = True

    def __init__(self, name: str, args: tuple[Any, ...], group: Group) -> None:
        kind = _kind_of(name)
        self.kind = Kind(kind, alike=kind in _ALIKE)
        self.group = group
        if kind in ("join", "barrier"):
            if kind == "join" or args[0] != 0:
                raise UnsupportedError(f"hvd.{kind} and process sets are not recorded")
            self._given: list[Any] = []
            self._got: list[Any] = []
            self.series = "horovod barrier"
            return
        gets, named = _PLACES[kind]
        self._given, self._got = _listed(args[0]), _listed(args[gets])
        if kind == "broadcast" and args[2] != group.rank:
            self._given = []  # only the root's counts
        if kind == "alltoall":
            self._got = [*self._got, args[3]]
        label = args[named]
        text = label.decode() if isinstance(label, bytes) else str(label)
        # Horovod matches ranks by names, because gradients become ready in any order.
        self.series = f"horovod {text or kind}"

    def given(self) -> list[Any]:
        """The tensors handed in."""
        return self._given

    def got(self) -> list[Any]:
        """The tensors that are filled."""
        return self._got

    def details(self) -> str:
        """Nothing further is compared."""
        return ""


def _kind_of(name: str) -> str:
    match = _ASYNC.match(name)
    return match[1] if match is not None else name.rpartition("_")[2]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class _Library(ABC):
    """Stands for Horovod's native module; what is not an operation is the real one's."""

    def __init__(self, real: Any, group: Group) -> None:
        self._real, self._group = real, group
        self._pending: dict[int, tuple[int, HorovodCall]] = {}

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if _ASYNC.match(name) or name in ("horovod_torch_barrier", "horovod_torch_join"):
            return lambda *args: self._begin(name, real, args)
        if name in ("horovod_torch_wait_and_clear", "horovod_torch_poll"):
            return lambda handle: self._end(name, real, handle)
        return real

    @abstractmethod
    def _begin(self, name: str, real: Callable[..., int], args: tuple[Any, ...]) -> int:
        """An operation is issued; its handle."""

    @abstractmethod
    def _end(self, name: str, real: Callable[..., Any], handle: int) -> Any:
        """An operation is waited for or asked after."""


class _Recording(_Library):
    def __init__(self, real: Any, group: Group, recorder: Any) -> None:
        super().__init__(real, group)
        self._recorder = recorder

    def _begin(self, name: str, real: Callable[..., int], args: tuple[Any, ...]) -> int:
        call = number = None
        if not self._recorder.is_stopped:
            with self._recorder.guarded():
                call = HorovodCall(name, args, self._group)
                number = self._recorder.enter(call)
        handle = real(*args)
        if call is not None and number is not None:
            self._pending[handle] = (number, call)
        return handle

    def _end(self, name: str, real: Callable[..., Any], handle: int) -> Any:
        done = real(handle)
        if name.endswith("wait_and_clear") and handle in self._pending:
            number, call = self._pending.pop(handle)
            self._recorder.leave(number, call, None, became=[list(one.shape) for one in call.got()])
        return done


class _Answering(_Library):
    def __init__(self, real: Any, group: Group, player: Any) -> None:
        super().__init__(real, group)
        self._player = player
        self._handles = 0

    def _begin(self, name: str, real: Callable[..., int], args: tuple[Any, ...]) -> int:
        call = HorovodCall(name, args, self._group)
        self._player.answer(call)
        self._handles += 1
        return self._handles

    def _end(self, name: str, real: Callable[..., Any], handle: int) -> Any:
        return 1 if name.endswith("poll") else None


def record_with(recorder: Any, settings: Settings) -> dict[str, Act]:
    """What to do when Horovod is imported, to record it."""
    group = Group.everybody("horovod", settings.rank, settings.size)

    def arrived(module: ModuleType) -> None:
        names = vars(module)
        really = names["init"]

        def init(*args: Any, **kwargs: Any) -> Any:
            result = really(*args, **kwargs)
            recorder.begin("horovod")
            if not isinstance(names["mpi_lib"], _Library):
                names["mpi_lib"] = _Recording(names["mpi_lib"], group, recorder)
            return result

        names["init"] = init

    def refuse(module: ModuleType) -> None:
        recorder.stop(UnsupportedError(f"{module.__name__} is not recorded: Horovod is for PyTorch only"))

    return {_MODULE: arrived, "horovod.tensorflow": refuse}


def answer_with(player: Any, settings: Settings) -> dict[str, Act]:
    """What to do when Horovod is imported, to answer it from a recording: no controller, no peers."""
    group = Group.everybody("horovod", settings.rank, settings.size)

    def arrived(module: ModuleType) -> None:
        names = vars(module)
        facts = {
            "rank": settings.rank,
            "size": settings.size,
            "local_rank": _number("HOROVOD_LOCAL_RANK", settings.rank),
            "local_size": _number("HOROVOD_LOCAL_SIZE", settings.size),
            "cross_rank": _number("HOROVOD_CROSS_RANK", 0),
            "cross_size": _number("HOROVOD_CROSS_SIZE", 1),
            "is_initialized": True,
            "is_homogeneous": True,
        }
        basics = names["_basics"]
        for name, value in facts.items():
            told = _always(value)
            names[name] = told
            setattr(basics, name, told)
        everybody = names[
            "global_process_set"
        ]  # without a controller it would be thought empty, and nothing be reduced
        everybody.ranks, everybody.process_set_id = list(range(settings.size)), 0
        basics._process_set_size = lambda _: settings.size
        basics._process_set_rank = lambda _: settings.rank
        names["init"] = lambda *args, **kwargs: player.begin("horovod")
        names["shutdown"] = lambda *args, **kwargs: None
        names["mpi_lib"] = _Answering(names["mpi_lib"], group, player)

    def refuse(module: ModuleType) -> None:
        real = vars(module)["cloudpickle"]

        class Plain:
            """Makes plain data only."""

            dump, dumps = staticmethod(real.dump), staticmethod(real.dumps)

            @staticmethod
            def load(file: Any) -> Any:
                return load_plain(file.read())

        vars(module)["cloudpickle"] = Plain

    acts: dict[str, Act] = {_MODULE: arrived}
    if not settings.trusts_objects:
        acts["horovod.torch.functions"] = refuse
    return acts


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


def _number(name: str, otherwise: int) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else otherwise
