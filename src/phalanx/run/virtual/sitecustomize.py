"""Divides the processor into several devices when a script imports TensorFlow, which has no variable for it. Its folder leads PYTHONPATH.

Then it steps aside: the script is run by Python itself, so that no traceback shows a frame of ours, and the next sitecustomize on the path runs as
if this one were not there. Uses nothing of ours, because the job's interpreter may not have it.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from typing import Any


class _Finder:
    """An import hook that is there until TensorFlow is asked for."""

    def __init__(self, count: int) -> None:
        self._count = count

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """TensorFlow's own spec, with a loader that divides the processor afterwards."""
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._count)  # type: ignore[assignment]
        return spec


class _Loader:
    def __init__(self, real: Any, count: int) -> None:
        self._real, self._count = real, count

    def create_module(self, spec: Any) -> Any:
        return self._real.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._real
        self._real.exec_module(module)
        config = module.config
        for processor in config.list_physical_devices("CPU")[:1]:
            config.set_logical_device_configuration(processor, [config.LogicalDeviceConfiguration()] * self._count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _step_aside() -> None:
    """Take this folder out of the path, for this process and for those that it starts, and run the next sitecustomize."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != here]
    given = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
    kept = [entry for entry in given if not entry or os.path.abspath(entry) != here]
    if any(kept):
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_count = os.environ.pop("PHALANX_VIRTUAL_DEVICES", "")
if _count.isdecimal():
    sys.meta_path.insert(0, _Finder(int(_count)))
_step_aside()
