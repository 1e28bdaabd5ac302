"""Ranks of Ray Train: workers of Ray that set their variables inside, and train in a thread beside their main one.

Ray names its processes (`ray::RayTrainWorker`). Where the worker writes its output tells its id, and its log of Ray Train (version 2,
the default since Ray 2.43) its rank, in every line:

{"levelname": "DEBUG", "message": "…", "run_name": "mnist", "component": "worker", "world_rank": 1, "local_rank": 1, …}
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from phalanx.attaching.identity import Identity
from phalanx.run.watch.stacks import ProcessStacks, Thread

_TITLE = "ray::"
_OUTPUT = re.compile(r"(?P<logs>.+)/worker-(?P<worker>[0-9a-f]+)-(?P<job>[0-9a-f]+)-\d+\.(?:out|err)")
_LIBRARY = ("ray/train/", "ray/air/")
_TAIL = 64 << 10


def is_ray_process(command: tuple[str, ...]) -> bool:
    """A worker of Ray's, by the title that Ray gives it."""
    return bool(command) and command[0].startswith(_TITLE)


def ray_identity(pid: int) -> Identity | None:
    """The place of a worker of Ray Train in its run; None for other workers, and where Ray Train keeps no such log."""
    try:
        output = _OUTPUT.fullmatch(str(Path(f"/proc/{pid}/fd/1").readlink()))
        if output is None:
            return None
        log = Path(output["logs"], "train", f"ray-train-sys-worker-{output['worker']}.log")
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - _TAIL, 0))
            lines = file.read(_TAIL).splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            told = json.loads(line)
            rank, run = int(told["world_rank"]), str(told["run_name"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        return Identity("ray", f"ray:{output['job']}/{run}", rank, None, told.get("local_rank"))
    return None


def with_training_thread(stacks: ProcessStacks) -> ProcessStacks:
    """Where Ray Train runs the script in a thread, that thread as the main one, on the root of the real one."""
    main = stacks.main
    found = next((thread for thread in stacks.threads if thread is not main and _trains(thread)), None)
    if main is None or found is None or not main.frames:
        return stacks
    values = ({}, *found.values) if found.values else ()
    training = replace(found, name=main.name, frames=(main.frames[0], *found.frames), values=values)
    others = (replace(thread, name="Ray") if thread is main else thread for thread in stacks.threads)
    return replace(stacks, threads=(training, *(thread for thread in others if thread is not found)))


def _trains(thread: Thread) -> bool:
    """A function of the user's that Ray Train called."""
    own = [number for number, frame in enumerate(thread.frames) if frame.is_user_code]
    below = thread.frames[: own[0]] if own else ()
    return any(part in frame.path for frame in below for part in _LIBRARY)
