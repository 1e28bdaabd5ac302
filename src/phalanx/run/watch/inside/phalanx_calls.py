"""What a rank of TensorFlow or Horovod asked its peers for: every call with its name, number, line and the pass of the loops around it.

Nothing is wrapped: no frame of this file is on the stack while a call of the user's runs, so none is in a traceback. Horovod's native modules
are looked into when an operation is fetched from them, TensorFlow tells of a call by the key that it draws for each collective and by the
statistics that it keeps of each function. Works with Python 3.8 and later, imports only what is quickly there, and never raises.
"""

from __future__ import annotations

import ast
from collections import deque

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, FrameType, TracebackType

    Group = tuple[str, int, int, int]
    Passes = tuple[tuple[str, int], ...]
    Place = tuple[str, int, str]

KEPT = 4000  # calls
MOST_FRAMES = 60
LIBRARIES = ("site-packages", "dist-packages", "/lib/python", "<frozen", "<__array", "<string>", "phalanx")
# Where threads stand while they wait for peers, beside the folders of PyTorch's and Horovod's own functions.
WAITING = ("torch/autograd/graph.py", "tensorflow/python/eager/execute.py")
# Through which a call to peers goes; a data set's own iterator does not.
CALLED = (
    "eager/polymorphic_function/",
    "eager/execute.py",
    "distribute/distribute_lib.py",
    "distribute/cross_device_ops.py",
    "/horovod/",
)
# The loops of Keras' own `fit`, which count for those who write none.
FITS = ("/trainer.py", "/training.py", "/training_v1.py")


class Call:
    """One call. `done` where that is told; `key` finds it again."""

    __slots__ = ("done", "group", "key", "kind", "name", "number", "op", "passes", "place", "sizes")

    def __init__(self, group: str, number: int, op: str, name: str, sizes: str, kind: str, key: object) -> None:
        self.group, self.number, self.op, self.name = group, number, op, name
        self.sizes, self.kind, self.key = sizes, kind, key
        self.done = False
        self.place: Place | None = None
        self.passes: Passes = ()


class Journal:
    """The last calls of this rank in the order in which they were made, and how many there were."""

    def __init__(self, library: str, by_name: bool) -> None:
        self.library, self.by_name = library, by_name
        self.calls: deque[Call] = deque(maxlen=KEPT)
        self.entered = self.completed = 0
        self.passes: Passes = ()
        self._numbers: dict[str, int] = {}

    def enter(
        self, op: str, name: str, frame: FrameType | None, sizes: str = "", kind: str = "", key: object = None
    ) -> Call:
        """A call is made from this frame."""
        group = name if self.by_name else self.library
        number = self._numbers[group] = self._numbers.get(group, 0) + 1
        call = Call(group, number, op, name, sizes, kind, key)
        call.place, call.passes = where(frame)
        self.passes = call.passes or self.passes
        self.entered += 1
        self.calls.append(call)
        return call

    def leave(self, call: Call) -> None:
        """A call is done."""
        if not call.done:
            call.done = True
            self.completed += 1

    def note_raised(self, traceback: TracebackType | None) -> None:
        """At the end of a rank: a call out of which the exception came that ends it was never done. Beside the main thread it looks the same as
        one that returned, and in a function of TensorFlow's a call is known only when it is through."""
        last = self.calls[-1] if self.calls else None
        frame = self._raised_in(last, traceback) if last is not None and last.done else None
        if last is None or frame is None:
            return
        passes = where(frame)[1]
        if passes == last.passes or not passes:
            last.done = False
            self.completed -= 1
        else:
            self.enter(last.op, last.name, frame, last.sizes, last.kind, last.key)

    def _raised_in(self, call: Call, traceback: TracebackType | None) -> FrameType | None:
        """The frame that stood at the line of this call, if what it called there is a library's call to peers."""
        found: FrameType | None = None
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if call.place is not None and (code.co_filename, traceback.tb_lineno) == call.place[:2]:
                found = traceback.tb_frame
            elif found is not None and any(part in code.co_filename for part in CALLED):
                return found
            traceback = traceback.tb_next
        return None

    @property
    def outstanding(self) -> int:
        """How many calls are not done."""
        return self.entered - self.completed

    def as_json(self, rank: int, size: int, pending: Call | None) -> dict[str, object]:
        """What is written for the supervisor."""
        calls = [*self.calls, pending] if pending is not None else list(self.calls)
        return {
            "rank": rank,
            "world_size": size,
            "library": self.library,
            "by_name": self.by_name,
            "entered": self.entered,
            "calls": [
                [one.group, one.number, one.op, one.name, one.sizes, one.kind, one.place, one.passes, one.done]
                for one in calls
            ],
        }


def where(frame: FrameType | None) -> tuple[Place | None, Passes]:
    """The innermost line of the user's code above a frame, and the numbered loops of the user's (or of Keras' `fit`) around it, the outermost first."""
    place: Place | None = None
    passes: list[tuple[str, int]] = []
    depth = 0
    while frame is not None and depth < MOST_FRAMES:
        code = frame.f_code
        name = code.co_filename
        if not any(part in name for part in LIBRARIES):
            if place is None:
                place = (name, frame.f_lineno or 0, code.co_name)
            counters = _counters(code, frame.f_lineno or 0)
            if counters:
                values = frame.f_locals
                found = [(one, values.get(one)) for one in counters]
                passes[:0] = [(one, value) for one, value in found if type(value) is int]
        elif code.co_name == "fit" and "keras" in name and name.endswith(FITS):
            values = frame.f_locals
            passes[:0] = [(one, values[one]) for one in ("epoch", "step") if type(values.get(one)) is int]
        frame = frame.f_back
        depth += 1
    return place, tuple(passes)


_LOOPS: dict[str, list[tuple[int, int, str, int]]] = {}
_COUNTERS: dict[tuple[CodeType, int], tuple[str, ...]] = {}


def _counters(code: CodeType, line: int) -> tuple[str, ...]:
    """The variables that count the passes of the loops around a line; asked of the source once for each line."""
    found = _COUNTERS.get((code, line))
    if found is None:
        loops = _loops_of(code.co_filename)
        found = tuple(
            name for begins, ends, name, of in loops if begins < line <= ends and of == _scope(loops, code, of)
        )
        _COUNTERS[code, line] = found
    return found


def _scope(loops: Sequence[tuple[int, int, str, int]], code: CodeType, of: int) -> int:
    """The function that a loop stands in begins where the code does, decorators aside; a module's at 0."""
    first = 0 if code.co_name == "<module>" else code.co_firstlineno
    return of if (of == 0) == (first == 0) and (of == 0 or first <= of <= first + 20) else -1


def _loops_of(file: str) -> list[tuple[int, int, str, int]]:
    """Every `for` with a counter: first and last line, its variable, and the line of the function around it (0 for the module)."""
    if file not in _LOOPS:
        found: list[tuple[int, int, str, int]] = []
        try:
            with open(file, "rb") as source:
                _collect(ast.parse(source.read(2 << 20)), 0, found)
        except Exception:  # no source, no passes
            found = []
        _LOOPS[file] = sorted(found)
    return _LOOPS[file]


def _collect(node: ast.AST, of: int, found: list[tuple[int, int, str, int]]) -> None:
    for child in ast.iter_child_nodes(node):
        inner = child.lineno if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else of
        if isinstance(child, ast.For):
            target = child.target
            if isinstance(target, ast.Tuple) and target.elts:
                target = target.elts[0]
            if isinstance(target, ast.Name):
                found.append((child.lineno, child.end_lineno or child.lineno, target.id, of))
        _collect(child, inner, found)


def place_of(frame: FrameType | None) -> str:
    """`data` for a thread in a data loader, `collective` for one in a library's call to its peers, else nothing."""
    for _ in range(12):
        if frame is None:
            break
        name = frame.f_code.co_filename
        if name.endswith(WAITING):
            return "collective"
        if name.endswith("data/ops/iterator_ops.py") or ("torch" in name and "utils/data" in name):
            return "data"
        if "torch/distributed" in name or "horovod/" in name:
            return "collective"
        frame = frame.f_back
    return ""
