"""Horovod's calls, seen when an operation is fetched from its native module: name, shape, type, and what is still waited for."""

from __future__ import annotations

import sys

from phalanx_calls import Journal

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from types import FrameType, ModuleType

    from phalanx_calls import Call

TORCH, TENSORFLOW = "horovod.torch.mpi_ops", "horovod.tensorflow.mpi_ops"
OPERATIONS = ("allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "join", "barrier")
# Functions of Horovod in which an operation is fetched only to see whether there is one.
ASKING = ("_check_function",)
GIVEN = ("tensor", "tensors", "variables")


class Fetched:
    """Stands for Horovod's native module. What is fetched from it is its own; that it was fetched is noted."""

    def __init__(self, real: object, watch: HorovodWatch) -> None:
        self.__dict__["_real"], self.__dict__["_watch"] = real, watch

    def __getattr__(self, name: str) -> object:
        found = getattr(self.__dict__["_real"], name)
        try:
            self.__dict__["_watch"].fetched(name, sys._getframe(1))
        except Exception:  # the call is the user's, and must not fail for our sake
            pass
        return found

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["_real"], name, value)


class HorovodWatch:
    """The calls of one rank. Horovod matches them by their names, in whatever order they are made."""

    def __init__(self, module: ModuleType, journal: Journal | None = None) -> None:
        self.module = module
        self.is_torch = module.__name__ == TORCH
        # in TensorFlow most calls are part of a function, of which its own watch knows: one journal has both, in order
        self.journal = journal or Journal("horovod", by_name=True)
        self.waits = False  # the rank waits for a handle, which takes processor time
        self._file = module.__name__.replace(".", "/") + ".py"
        self._open: dict[int, Call] = {}  # by number, calls that are not done
        self._first: int | None = None  # the handle of the first call
        attribute = "mpi_lib" if self.is_torch else "MPI_LIB"
        setattr(module, attribute, Fetched(getattr(module, attribute), self))

    may_spin = False  # whether it waits is known

    def pending(self, frame: FrameType | None) -> None:
        """Nothing: every call is known when it begins."""

    @property
    def connected(self) -> bool:
        """Whether `hvd.init()` is through."""
        return bool(self.module.is_initialized())

    def fetched(self, name: str, frame: FrameType | None) -> None:
        """An operation is about to be called."""
        op = next((one for one in OPERATIONS if one in name), "")
        functions = sys.modules.get("phalanx_tensorflow")
        if op and not self.is_torch and functions is not None and functions.is_traced():
            functions.note_traced(
                frame
            )  # nothing is asked of anybody yet; the frame may be of code that TensorFlow wrote
            return
        frame = self._caller(frame)
        if frame is None or frame.f_code.co_name in ASKING:
            return
        if self.is_torch and (op or name == "horovod_torch_wait_and_clear"):
            self._settle(is_between=True)
        self.waits = name == "horovod_torch_wait_and_clear"
        if not op:
            return
        if not self.is_torch:
            self._in_tensorflow(op, frame)
            return
        values, number = frame.f_locals, self.journal.entered
        # Horovod names what has no name by the number of its handle, which every rank counts for itself
        label = str(values.get("name") or f"{op}.noname.{number}")
        self._open[number] = self.journal.enter(op, label, frame, *described(values))

    def _caller(self, frame: FrameType | None) -> FrameType | None:
        """The function of Horovod's that fetched it; a recorder may stand between."""
        for _ in range(4):
            if frame is None or frame.f_code.co_filename.replace("\\", "/").endswith(self._file):
                return frame
            frame = frame.f_back
        return None

    def _settle(self, is_between: bool) -> None:
        """What is not in Horovod's list of handles any more is done. Handles are numbered as calls are; the newest call may not have got its
        handle yet, unless the main thread is between two calls."""
        handles = self.module._handle_map
        if self._first is None and handles and len(handles) == self.journal.entered:
            self._first = min(handles)
        if self._first is None:
            return
        newest = self.journal.entered - 1
        for number in list(self._open):
            if number + self._first not in handles and (is_between or number != newest):
                self.journal.leave(self._open.pop(number))

    def _in_tensorflow(self, op: str, frame: FrameType) -> None:
        """Outside of a function."""
        self._leave_all()  # an operation of the eager kind returns when it is done
        label = frame.f_locals.get("name")
        self._open[self.journal.entered] = self.journal.enter(
            op, str(label) if label else op, frame, *described(frame.f_locals)
        )

    def _leave_all(self) -> None:
        for number in list(self._open):
            self.journal.leave(self._open.pop(number))

    def settle(self, frame: FrameType | None) -> None:
        """Called beside the main thread, which stands in `frame`: what it has come out of is done."""
        is_within = _is_within(frame, self._file)
        if self.is_torch:
            self._settle(is_between=not is_within)
            self.waits = _is_within(frame, self._file, ("synchronize",))
        elif not is_within:
            self._leave_all()


def _is_within(frame: FrameType | None, ending: str, functions: tuple[str, ...] = ()) -> bool:
    depth = 0
    while frame is not None and depth < 12:
        code = frame.f_code
        if code.co_filename.replace("\\", "/").endswith(ending) and (not functions or code.co_name in functions):
            return True
        frame, depth = frame.f_back, depth + 1
    return False


def described(values: dict[str, object]) -> tuple[str, str]:
    """Shape and type of what is handed in."""
    for name in GIVEN:
        given = values.get(name)
        if isinstance(given, (list, tuple)):
            return f"{len(given)} tensors", str(getattr(given[0], "dtype", "")) if given else ""
        shape = getattr(given, "shape", None)
        if shape is not None:
            try:
                return str([int(size) for size in shape]), str(getattr(given, "dtype", ""))
            except (TypeError, ValueError):  # an unknown size, in a graph
                return "", str(getattr(given, "dtype", ""))
    return "", ""
