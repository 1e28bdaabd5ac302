"""Which libraries a rank asks its peers by beside PyTorch: watches Horovod and TensorFlow from the moment they are imported."""

from __future__ import annotations

import sys

import phalanx_horovod as horovod
import phalanx_tensorflow as tensorflow

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Group = tuple[str, int, int, int]  # name; last enqueued, started, completed


class Libraries:
    """`run_beside` is called when the first of them comes."""

    def __init__(self, main: int, run_beside: Callable[[], None]) -> None:
        self._main, self._run_beside = main, run_beside
        self._watches: list[Any] = []

    def after_imports(self) -> dict[str, Callable[[ModuleType], None]]:
        """What to do when a module has been imported."""
        return {
            tensorflow.FUNCTIONS: lambda module: self._tensorflow().watch_functions(module),
            tensorflow.COLLECTIVES: lambda module: self._tensorflow().watch_collectives(module),
            horovod.TORCH: self._horovod_comes,
            horovod.TENSORFLOW: self._horovod_comes,
            "jax._src.distributed": lambda module: self._run_beside(),
        }

    def _horovod_comes(self, module: ModuleType) -> None:
        shared = self._tensorflow() if module.__name__ == horovod.TENSORFLOW else None
        watch = horovod.HorovodWatch(module, shared.journal if shared is not None else None)
        if shared is not None:
            shared.horovod = watch
        else:
            self._watches.append(watch)
        self._run_beside()

    def _tensorflow(self) -> tensorflow.TensorFlowWatch:
        found = [one for one in self._watches if isinstance(one, tensorflow.TensorFlowWatch)]
        if not found:
            found = [tensorflow.TensorFlowWatch(self._main)]
            self._watches.append(found[0])
            self._run_beside()
        return found[0]

    def groups(self) -> list[Group]:
        """One for each library by which the rank has met its peers."""
        frame = sys._current_frames().get(self._main)
        found: list[Group] = []
        for one in self._watches:
            one.settle(frame)
            journal = one.journal
            if journal.entered or one.connected:
                entered = journal.entered + (one.pending(frame) is not None)
                # waiting for Horovod takes processor time; in a function of TensorFlow's it cannot be told from work, but for how much
                started = entered if one.waits else 0 if one.may_spin else -1
                found.append((journal.library, entered, started, journal.completed))
        # JAX's collectives are compiled into the step, and not counted
        return found or ([("jax", 1, 1, 1)] if _jax_has_met() else [])

    def as_json(self, rank: int, size: int) -> dict[str, object] | None:
        """What was asked of the library that was asked most; None if nothing was."""
        frame = sys._current_frames().get(self._main)
        used = [one for one in self._watches if one.journal.entered or one.pending(frame) is not None]
        if not used:
            return None
        most = max(used, key=_calls_of)
        most.journal.note_raised(getattr(sys, "last_traceback", None))
        told: dict[str, object] = most.journal.as_json(rank, size, most.pending(frame))
        return told


def _calls_of(watch: Any) -> int:
    return int(watch.journal.entered)


def _jax_has_met() -> bool:
    """Whether `jax.distributed.initialize()` is through."""
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    return getattr(state, "client", None) is not None
