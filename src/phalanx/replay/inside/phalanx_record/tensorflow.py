"""TensorFlow: the four collectives of MultiWorkerMirroredStrategy, in graphs or eagerly, recorded or answered.

They are made by four functions of TensorFlow. Behind each (recording), or in its place (replaying), stands an operation that
calls us with the values when it runs. The numbers of these operations follow the order in which graphs are traced.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .arrival import Act
from .calls import Group, Kind
from .places import users_line
from .settings import Settings

_MODULE = "tensorflow.python.ops.collective_ops"
_CONTEXT = "tensorflow.python.eager.context"
_STRATEGY = "tensorflow.python.distribute.collective_all_reduce_strategy"
_KINDS = ("all_reduce_v2", "all_gather_v2", "broadcast_send", "broadcast_recv")


class Site:
    """One operation in a graph, or one eager call: its number, and the line of the script at which it was made."""

    _numbers = itertools.count()

    def __init__(self, kind: str, folder: str) -> None:
        self.kind = kind
        self.number = next(Site._numbers)
        self.line = users_line(folder)
        self.runs = 0


class TensorFlowCall:
    """One run of it, in the form that the recorder knows."""

    is_async = False

    def __init__(self, site: Site, given: list[Any], got: list[Any], group: Group) -> None:
        self.kind = Kind(site.kind.removesuffix("_v2"), alike=True)
        self.series = f"{group.name} {site.number}"
        self.line = site.line
        self.group = group
        self._given, self._got = given, got

    def given(self) -> list[Any]:
        """The arrays handed in."""
        return self._given

    def got(self) -> list[Any]:
        """The arrays that are filled."""
        return self._got

    def details(self) -> str:
        """Nothing further is compared."""
        return ""


def record_with(recorder: Any, settings: Settings) -> dict[str, Act]:
    """What to do when TensorFlow is imported, to record it."""
    group = Group.everybody("tensorflow", settings.rank, settings.size)

    def around(kind: str, really: Callable[..., Any]) -> Callable[..., Any]:
        def collective(*args: Any, **kwargs: Any) -> Any:
            import tensorflow

            result = really(*args, **kwargs)
            if recorder.is_stopped or _is_compiled_whole():
                return result
            recorder.begin("tensorflow")
            site = Site(kind, settings.script)
            given = [] if kind == "broadcast_recv" else [args[0]]

            def note(*values: Any) -> Any:
                _note(recorder, TensorFlowCall(site, list(values[:-1]), [values[-1]], group), site)
                return values[-1]

            noted = tensorflow.numpy_function(note, [*given, result], result.dtype)
            noted.set_shape(result.shape)
            return noted

        return collective

    return {_MODULE: lambda module: _replace(module, around)}


def _note(recorder: Any, call: TensorFlowCall, site: Site) -> None:
    if recorder.is_stopped:
        return
    site.runs += 1
    with recorder.guarded():
        recorder.training.step = max(recorder.training.step, site.runs - 1)
        recorder.leave(recorder.enter(call), call, None, became=[list(one.shape) for one in call.got()])


def answer_with(player: Any, settings: Settings) -> dict[str, Act]:
    """What to do when TensorFlow is imported, to answer it from a recording."""
    group = Group.everybody("tensorflow", settings.rank, settings.size)

    def instead(kind: str, really: Callable[..., Any]) -> Callable[..., Any]:
        def collective(*args: Any, **kwargs: Any) -> Any:
            import tensorflow

            player.begin("tensorflow")
            site = Site(kind, settings.script)
            receives = kind == "broadcast_recv"
            given = [] if receives else [tensorflow.convert_to_tensor(args[0])]
            kept = tensorflow.as_dtype(args[1]) if receives else given[0].dtype

            def answer(*values: Any) -> Any:
                return _answer(player, site, list(values), kept.as_numpy_dtype, group)

            result = tensorflow.numpy_function(answer, given, kept)
            if receives:
                result.set_shape(args[0])
            elif kind != "all_gather_v2":
                result.set_shape(given[0].shape)
            return result

        return collective

    return {_MODULE: lambda module: _replace(module, instead), _CONTEXT: _stay_alone, _STRATEGY: _ask_for_no_health}


def _answer(player: Any, site: Site, values: list[Any], kind: Any, group: Group) -> Any:
    import numpy

    site.runs += 1
    player.training.step = max(player.training.step, site.runs - 1)
    place = (f"{group.name} {site.number}", site.runs - 1)
    recorded = player.record.calls.get(place)
    done = player.record.done.get(int(recorded["n"])) if recorded is not None else None
    shape = done["became"][0] if done is not None else values[0].shape
    result = numpy.zeros([int(extent) for extent in shape], kind)
    player.answer(TensorFlowCall(site, values, [result], group))
    return result


def _replace(module: ModuleType, around: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
    names = vars(module)
    for kind in _KINDS:
        if kind in names:
            names[kind] = around(kind, names[kind])


def _is_compiled_whole() -> bool:
    """Inside XLA's graphs no Python can be called; such collectives are not recorded."""
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import control_flow_util

    return bool(control_flow_util.GraphOrParentsInXlaContext(ops.get_default_graph()))


def _stay_alone(module: ModuleType) -> None:
    """Have a worker of several start its server as the only one of them: its devices keep their names, and nobody is waited for."""
    context = vars(module)["Context"]
    really = context.enable_collective_ops

    def enable_collective_ops(self: Any, server: Any) -> Any:
        for job in server.cluster.job:
            for number in list(job.tasks):
                if job.name != server.job_name or number != server.task_index:
                    del job.tasks[number]
                else:
                    job.tasks[number] = "localhost:0"
        server.port = 0
        alone = f"/job:{server.job_name}/replica:0/task:{server.task_index}"
        server.default_session_config.experimental.collective_group_leader = alone
        return really(self, server)

    context.enable_collective_ops = enable_collective_ops
    context.configure_coordination_service = lambda self, *args, **kwargs: None


def _ask_for_no_health(module: ModuleType) -> None:
    """A thread of the strategy would ask the peers how they are."""
    vars(module)["CollectiveAllReduceExtended"]._start_check_health_thread = lambda self: None
