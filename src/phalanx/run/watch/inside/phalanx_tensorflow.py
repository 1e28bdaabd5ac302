"""TensorFlow's calls: every function that holds collectives, and every collective outside of one, by the key that TensorFlow draws for it."""

from __future__ import annotations

import sys
import threading
import weakref

from phalanx_calls import Call, Journal, where

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from types import FrameType, ModuleType
    from typing import Any

    from phalanx_horovod import HorovodWatch

FUNCTIONS = "tensorflow.python.eager.polymorphic_function.polymorphic_function"
COLLECTIVES = "tensorflow.python.distribute.cross_device_utils"
HERE = "eager/polymorphic_function/polymorphic_function.py"
MOST_FRAMES = 500  # tracing goes deep
_WITH_CALLS: weakref.WeakSet[Any] = weakref.WeakSet()  # functions in which peers are asked for something


class Statistics:
    """Stands for what TensorFlow keeps of how often functions are traced; told of each call when it is through."""

    def __init__(self, real: Any, watch: TensorFlowWatch) -> None:
        self._real, self._watch = real, watch

    def called_without_tracing(self, *given: Any, **named: Any) -> None:
        self._watch.function_done(sys._getframe(1))
        self._real.called_without_tracing(*given, **named)

    def called_with_tracing(self, *given: Any, **named: Any) -> None:
        self._watch.function_done(sys._getframe(1))
        self._real.called_with_tracing(*given, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class TensorFlowWatch:
    """The calls of one rank, in order: TensorFlow's workers must make the same ones one after the other."""

    waits = False

    def __init__(self, main: int) -> None:
        self.horovod: HorovodWatch | None = None  # where Horovod carries the calls
        self.journal = Journal("tensorflow", by_name=False)
        self._main = main
        self.functions_done = 0

    def watch_functions(self, module: ModuleType) -> None:
        """The module of functions has been imported."""
        name = "_frequent_tracing_detector_manager"
        setattr(module, name, Statistics(getattr(module, name), self))

    def watch_collectives(self, module: ModuleType) -> None:
        """The module of collectives has been imported: a key is drawn for each of them when it is about to run."""
        keys = module.CollectiveKeys
        draw = keys.get_instance_key

        def get_instance_key(self_of_keys: Any, group_key: Any, device: Any) -> Any:
            try:
                self.key_drawn(sys._getframe(1))
            except Exception:  # the call is the user's, and must not fail for our sake
                pass
            return draw(self_of_keys, group_key, device)

        keys.get_instance_key = get_instance_key

    @property
    def may_spin(self) -> bool:
        """Whether waiting takes some processor time, as that of Horovod's threads does."""
        return self.horovod is not None

    @property
    def connected(self) -> bool:
        """Whether this process belongs to a cluster of workers, or to Horovod's ranks."""
        if self.horovod is not None:
            return bool(self.horovod.connected)
        module = sys.modules.get("tensorflow.python.eager.context")
        context = getattr(module, "_context", None)
        return getattr(context, "_collective_ops_server_def", None) is not None

    def key_drawn(self, frame: FrameType | None) -> None:
        """A collective is about to run: the first of a function's, or one of its own."""
        if threading.get_ident() != self._main:
            frame = sys._current_frames().get(
                self._main
            )  # outside of functions a thread of TensorFlow's makes the call
        function = outermost_function(frame)
        last = self.journal.calls[-1] if self.journal.calls else None
        if function is None:
            if last is not None and not last.done:
                self.journal.leave(last)  # what is not in a function returns when it is done
            self.journal.enter(_collective_of(frame), _collective_of(frame), frame)
            return
        _WITH_CALLS.add(function)
        if last is not None and not last.done and last.key == id(function):
            return
        if last is not None and not last.done:
            self.journal.leave(last)
        name = _name_of(function)
        self.journal.enter(name, name, frame, key=id(function))

    def function_done(self, frame: FrameType) -> None:
        """A call of a function is through."""
        try:
            self.functions_done += 1
            function = frame.f_locals.get("self")
            last = self.journal.calls[-1] if self.journal.calls else None
            if last is not None and last.key == id(function) and not last.done:
                self.journal.leave(last)
            elif function in _WITH_CALLS:  # Horovod draws no keys: known when it is through
                name = _name_of(function)
                self.journal.leave(self.journal.enter(name, name, frame, key=id(function)))
        except Exception:  # nothing of ours may end a step
            pass

    def settle(self, frame: FrameType | None) -> None:
        """Called beside the main thread, which stands in `frame`: a collective outside of a function that it has come out of is done."""
        if self.horovod is not None:
            self.horovod.settle(frame)
            return
        last = self.journal.calls[-1] if self.journal.calls else None
        if last is not None and not last.done and outermost_function(frame) is None and not _is_collective(frame):
            self.journal.leave(last)

    def pending(self, frame: FrameType | None) -> Call | None:
        """A call of Horovod's within a function, for which no key is drawn: the main thread stands in it."""
        function = outermost_function(frame)
        last = self.journal.calls[-1] if self.journal.calls else None
        if function is None or function not in _WITH_CALLS or (last is not None and not last.done):
            return None
        name = _name_of(function)
        call = Call("tensorflow", self.journal.entered + 1, name, name, "", "", id(function))
        call.place, call.passes = where(frame)
        return call


def outermost_function(frame: FrameType | None) -> Any:
    """The function of TensorFlow's that the script called, if the frame is below one."""
    found = None
    for _ in range(MOST_FRAMES):
        if frame is None:
            break
        code = frame.f_code
        if code.co_name == "__call__" and code.co_filename.replace("\\", "/").endswith(HERE):
            found = frame.f_locals.get("self")
        frame = frame.f_back
    return found


def is_traced() -> bool:
    """Whether a function is being traced, and not run."""
    context = sys.modules.get("tensorflow.python.eager.context")
    return context is not None and not context.executing_eagerly()


def note_traced(frame: FrameType | None) -> None:
    """A call is part of the function that is being traced."""
    function = outermost_function(frame)
    if function is not None:
        _WITH_CALLS.add(function)


def _name_of(function: Any) -> str:
    return str(getattr(function, "_name", None) or getattr(function, "name", "") or "function")


def _is_collective(frame: FrameType | None) -> bool:
    depth = 0
    while frame is not None and depth < 20:
        if "tensorflow/python/distribute/" in frame.f_code.co_filename.replace("\\", "/"):
            return True
        frame, depth = frame.f_back, depth + 1
    return False


def _collective_of(frame: FrameType | None) -> str:
    """`reduce`, the method of the strategy that the script called."""
    name = "collective"
    depth = 0
    while frame is not None and depth < MOST_FRAMES:
        if frame.f_code.co_filename.replace("\\", "/").endswith("distribute/distribute_lib.py"):
            name = frame.f_code.co_name
        frame, depth = frame.f_back, depth + 1
    return name
