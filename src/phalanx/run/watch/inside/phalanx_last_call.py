"""What a rank that fails in a collective had asked for: operation, name, shape, type and root, from the frames of its exception.

Horovod tells every rank that "one rank" sent another shape than "another": which one is known only to each of them. Works with
Python 3.8 and later, imports only what is quickly there, reads only, and looks once: when the rank ends by an exception.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from types import FrameType, TracebackType

LIBRARIES = ("horovod/torch/", "horovod/tensorflow/", "horovod/keras/", "horovod/_keras/", "torch/distributed/")
TENSORS = ("tensor", "p", "value", "variable", "output", "tensors")
INSTALLED = ("site-packages", "dist-packages", "/lib/python")
LONGEST = 200
CALL, MODULE = "last-call.json", "last-module.json"


def note_at_exit(folder: str) -> None:
    """Of this process, if it ends by an exception: within a collective, what it had asked for; at a name that a module lacks, which file that
    module is. Each into a file."""
    import atexit
    import json
    import os
    import sys

    pid = os.getpid()

    def note() -> None:
        if os.getpid() != pid:
            return
        told = (
            (CALL, last_call(getattr(sys, "last_traceback", None))),
            (MODULE, lacking_module(getattr(sys, "last_value", None))),
        )
        for name, found in told:
            if found:
                with open(
                    os.path.join(folder, name),
                    "w",
                    encoding="utf-8",
                    opener=lambda name, flags: os.open(name, flags, 0o600),
                ) as file:
                    json.dump(found, file)

    atexit.register(note)


def lacking_module(error: object) -> dict[str, str]:
    """`module` and `file` where a module of the script's own, or one that hides another, lacks a name (Python 3.10 and later tell which)."""
    module = getattr(error, "obj", None)
    if not isinstance(error, AttributeError) or type(module).__name__ != "module":
        return {}
    file = str(getattr(module, "__file__", None) or "").replace("\\", "/")
    if not file or any(part in file for part in INSTALLED):
        return {}
    return {
        "module": str(getattr(module, "__name__", "")),
        "file": file[:LONGEST],
        "name": str(getattr(error, "name", "")),
    }


def last_call(traceback: TracebackType | None) -> dict[str, str]:
    """The facts of the collective in which an exception was raised; empty if it was raised elsewhere."""
    frames: list[FrameType] = []
    while traceback is not None:
        if any(part in traceback.tb_frame.f_code.co_filename.replace("\\", "/") for part in LIBRARIES):
            frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    if not frames:
        return {}
    # The function that the script called; PyTorch's stand behind one that keeps a log of them.
    names = [frame.f_code.co_name for frame in frames]
    found = {"op": next((name for name in names if name != "wrapper"), names[0])}
    for frame in reversed(frames):  # the innermost knows best
        for key, value in _facts(frame.f_locals).items():
            found.setdefault(key, value[:LONGEST])
    return found


def _facts(values: dict[str, object]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in (("root", values.get("root_rank", values.get("src"))), ("to", values.get("dst"))):
        if isinstance(value, int):
            found[key] = str(value)
    if isinstance(values.get("name"), str):
        found["name"] = str(values["name"])
    for name in TENSORS:
        tensor = values.get(name)
        shape, kind = getattr(tensor, "shape", None), getattr(tensor, "dtype", None)
        if shape is not None and kind is not None:
            try:
                found["shape"], found["dtype"] = str([int(size) for size in shape]), str(kind)
            except (TypeError, ValueError):  # an unknown size, in a graph
                continue
            break
    return found
