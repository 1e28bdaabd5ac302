"""TensorFlow: variables between two calls of a compiled function, batches, losses as they are traced, and reductions."""

from __future__ import annotations

import weakref
import zlib
from types import ModuleType
from typing import Any

from .lines import line
from .observer import Observer, wrap

_MOST_BATCHES = 400
_MOST_ROWS = 256
_LENGTH = 4096
_THROUGH = ("Identity", "Cast", "Reshape", "Squeeze", "StopGradient", "EnsureShape")


class Graphs:
    """What one process of a TensorFlow job trains, by what can be seen between the calls of its functions."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.variables: list[tuple[weakref.ref[Any], str]] = []
        self.depth = 0
        self.looks = 0
        self._told = 0
        self._iterators = 0
        self._batches = 0
        self._gradients: list[Any] = []

    def look(self) -> None:
        """Between two steps: the trainable variables as they are now."""
        self.looks += 1
        if not self.observer.settings.looks_at(self.looks - 1):
            return
        living = [(one, name) for ref, name in self.variables if (one := ref()) is not None]
        values = [_sketch(one) for one, _ in living]
        names = [name for _, name in living]
        self.observer.write("weights", n=self.looks - 1, line=line(), names=names, values=values)
        self.observer.journal.flush()

    def came(self, iterator: Any, batch: Any) -> None:
        """A batch of a dataset goes to the script."""
        known = getattr(iterator, "_phalanx_number", None)
        if known is None:  # kept at the iterator: a later one may lie at the same address
            known, self._iterators = self._iterators, self._iterators + 1
            object.__setattr__(iterator, "_phalanx_number", known)
        self._batches += 1
        if self._batches <= _MOST_BATCHES:
            self.observer.write("taken", d=known, n=self.looks, rows=_rows(batch), line=line())

    def differentiated(self, target: Any, gradients: Any) -> None:
        """A tape was asked for gradients, while a function is traced or at once."""
        leaf = target[0] if isinstance(target, (list, tuple)) and target else target
        divisor, kind = _composition(leaf)
        if not _is_eager():  # of a graph: others hold numbers, and their reduction is not traced
            self._gradients += [one for one in _leaves(gradients) if one is not None]
        if self._told < 50:
            self._told += 1
            self.observer.write("tape", divisor=divisor, kind=kind, line=line())

    def reduced(self, how: Any, value: Any) -> None:
        """Replicas reduce something."""
        given = _leaves(value)
        is_gradient = any(one is other for one in given for other in self._gradients)
        name = str(getattr(how, "name", how)).rpartition(".")[2].upper()
        self.observer.write("reduced", red=name, what="grad" if is_gradient else "", line=line())


def hooks(observer: Observer) -> dict[str, Any]:
    """By module: what is followed when it has been imported."""
    graphs = observer.parts["graphs"] = Graphs(observer)
    return {
        "tensorflow.python.ops.resource_variable_ops": lambda module: _variables(graphs, module),
        "tensorflow.python.eager.polymorphic_function.polymorphic_function": lambda module: _calls(graphs, module),
        "tensorflow.python.eager.backprop": lambda module: _tapes(graphs, module),
        "tensorflow.python.distribute.distribute_lib": lambda module: _strategies(graphs, module),
        "tensorflow.python.distribute.input_lib": lambda module: _iterators(graphs, module.DistributedIteratorBase),
        "tensorflow.python.data.ops.iterator_ops": lambda module: _iterators(graphs, module.OwnedIterator),
    }


def _variables(graphs: Graphs, module: ModuleType) -> None:
    def init_of(really: Any) -> Any:
        def construct(self: Any, *args: Any, **kwargs: Any) -> None:
            really(self, *args, **kwargs)
            with graphs.observer.guard:
                if self.trainable and self.dtype.is_floating:
                    graphs.variables.append((weakref.ref(self), str(self.name).partition(":")[0]))

        return construct

    wrap(module.BaseResourceVariable, "__init__", init_of)


def _calls(graphs: Graphs, module: ModuleType) -> None:
    observer = graphs.observer

    def call_of(really: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if graphs.depth or observer.is_broken or not _is_eager():
                return really(self, *args, **kwargs)
            with observer.guard:
                graphs.look()
                observer.write("called", n=graphs.looks - 1, rows=_rows((args, kwargs)), line=line())
            graphs.depth += 1
            try:
                return really(self, *args, **kwargs)
            finally:
                graphs.depth -= 1
                _ended(graphs)

        return call

    wrap(module.Function, "__call__", call_of)


def _ended(graphs: Graphs) -> None:
    """A call is over: that may be as far as was wanted."""
    graphs.observer.finish_step()


def _tapes(graphs: Graphs, module: ModuleType) -> None:
    observer = graphs.observer

    def gradient_of(really: Any) -> Any:
        def gradient(self: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            found = really(self, target, *args, **kwargs)
            if not observer.is_broken:
                with observer.guard:
                    if not graphs.depth and _is_eager():
                        graphs.look()
                    graphs.differentiated(target, found)
            return found

        return gradient

    wrap(module.GradientTape, "gradient", gradient_of)


def _strategies(graphs: Graphs, module: ModuleType) -> None:
    observer = graphs.observer

    def init_of(really: Any) -> Any:
        def construct(self: Any, *args: Any, **kwargs: Any) -> None:
            really(self, *args, **kwargs)
            with observer.guard:
                if not type(self).__name__.startswith("_"):  # the default one stands for none
                    observer.write("strategy", cls=type(self).__name__, line=line())

        return construct

    def reduce_of(really: Any) -> Any:
        def all_reduce(self: Any, how: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
            with observer.guard:
                graphs.reduced(how, value)
            return really(self, how, value, *args, **kwargs)

        return all_reduce

    def joined_of(kind: str) -> Any:
        def make(really: Any) -> Any:
            def join(self: Any, *args: Any, **kwargs: Any) -> Any:
                with observer.guard:
                    if not graphs.depth and _is_eager():
                        observer.write(kind, n=graphs.looks, line=line())
                return really(self, *args, **kwargs)

            return join

        return make

    wrap(module.StrategyBase, "__init__", init_of)
    wrap(module.ReplicaContextBase, "all_reduce", reduce_of)
    for owner in (module.StrategyBase, module.Strategy):
        for name, kind in (("reduce", "joined"), ("gather", "joined"), ("experimental_local_results", "local")):
            if name in vars(owner):
                wrap(owner, name, joined_of(kind))


def _iterators(graphs: Graphs, owner: Any) -> None:
    observer = graphs.observer

    def next_of(really: Any) -> Any:
        def following(self: Any) -> Any:
            if graphs.depth or observer.is_broken or not _is_eager():
                return really(self)
            graphs.depth += 1  # a distributed iterator asks plain ones
            try:
                batch = really(self)
            finally:
                graphs.depth -= 1
            with observer.guard:
                graphs.came(self, batch)
            return batch

        return following

    wrap(owner, "__next__", next_of)


def _is_eager() -> bool:
    from tensorflow.python.eager import context

    return bool(context.executing_eagerly())


def _leaves(value: Any) -> list[Any]:
    """Tensors of a batch, those of this process's replicas one behind the other."""
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    if isinstance(value, (list, tuple)):
        return [leaf for one in value for leaf in _leaves(one)]
    if type(value).__name__ == "PerReplica":
        return [leaf for one in value.values for leaf in _leaves(one)]
    return [value]


def _rows(batch: Any) -> list[int]:
    """One number for each sample, as far as it is tensors or arrays."""
    arrays = [one.numpy() if hasattr(one, "numpy") else one for one in _leaves(batch) if hasattr(one, "shape")]
    arrays = [one for one in arrays if getattr(one, "ndim", 0) > 0 and hasattr(one, "tobytes")]
    if not arrays or str(arrays[0].dtype) == "object":
        return []
    return [zlib.crc32(row.tobytes()) for row in arrays[0][:_MOST_ROWS]]


def _sketch(variable: Any) -> list[float] | None:
    import numpy

    try:
        flat = numpy.asarray(variable.numpy(), dtype=numpy.float64).reshape(-1)
    except Exception:  # not filled yet
        return None
    directions = numpy.random.RandomState(0x5EED).standard_normal((2, min(_LENGTH, max(1, flat.size))))
    folded = numpy.zeros(directions.shape[1])
    for start in range(0, flat.size, _LENGTH):
        part = flat[start : start + _LENGTH]
        folded[: part.size] += part * (1 + (start // _LENGTH) % 7)
    return [*(float(one) for one in directions @ folded), float(numpy.linalg.norm(flat))]


def _composition(tensor: Any) -> tuple[float | None, str]:
    """`(divisor, kind)` of a loss in a graph: a `mean`, or a `sum` divided by a number; `(None, "")` where it does not tell."""
    from tensorflow.python.framework import tensor_util

    divisor = 1.0
    for _ in range(12):
        try:
            op = tensor.op
        except (AttributeError, NotImplementedError):  # computed at once: there is no graph
            return None, ""
        if op.type in _THROUGH:
            tensor = op.inputs[0]
        elif op.type in ("RealDiv", "DivNoNan", "Mul"):
            values = [tensor_util.constant_value(one) for one in op.inputs]
            known = [
                place for place, value in enumerate(values) if value is not None and getattr(value, "size", 1) == 1
            ]
            if len(known) != 1 or (op.type != "Mul" and known[0] == 0) or not float(values[known[0]]):
                return None, ""
            by = float(values[known[0]])
            divisor, tensor = (divisor / by if op.type == "Mul" else divisor * by), op.inputs[1 - known[0]]
        else:
            return (divisor, op.type.lower()) if op.type in ("Mean", "Sum") else (None, "")
    return None, ""
