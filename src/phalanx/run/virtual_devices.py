"""Runs a TensorFlow script on a processor that is divided into several devices. Started in the job's own interpreter.

    python virtual_devices.py 4 train.py --epochs 2
    python virtual_devices.py 4 -m package.train --epochs 2

Uses nothing of ours, because the job's interpreter may not have it.
"""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path


def divide_processor(count: int) -> None:
    """Make `count` logical devices of the one processor. Must be done before TensorFlow first looks at its devices."""
    tensorflow = importlib.import_module("tensorflow")
    config = tensorflow.config
    for processor in config.list_physical_devices("CPU")[:1]:
        config.set_logical_device_configuration(processor, [config.LogicalDeviceConfiguration()] * count)


def main() -> None:
    """Divide, then be the user's script."""
    count, *rest = sys.argv[1:]
    if rest[0] == "-m":
        sys.argv = rest[1:]
        sys.path[0] = str(Path.cwd())
        divide_processor(int(count))
        runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = rest
    sys.path[0] = str(Path(rest[0]).resolve().parent)
    divide_processor(int(count))
    runpy.run_path(rest[0], run_name="__main__")


if __name__ == "__main__":
    main()
