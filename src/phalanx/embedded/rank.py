"""Inside a rank: finds out which rank this is, joins the job's bundle, keeps the heartbeat, and leaves last words.

Runs in the daemon thread that `phalanx_gate` starts. The first rank of a node also starts the companion, a process of its own that
looks at the node's ranks with the watch of `phalanx run`; nothing of that runs inside the rank.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import phalanx_gate
from phalanx import private
from phalanx.embedded import folders
from phalanx.embedded.hooks import after_import
from phalanx.embedded.identity import Place, name_of_script, place_now
from phalanx.embedded.store import exchange
from phalanx.model import bundle as layout

LEAVING = "leaving.json"
INSIDE = Path(__file__).parent.parent / "run" / "watch" / "inside"
_LOOK_S = 0.5  # between two looks whether the process has become a rank


def keep_watch() -> None:
    """Wait until this process is a rank, then keep its heartbeat until it ends."""
    pid = os.getpid()
    after_import("transformers.trainer", _add_to_trainers)
    while (place := place_now()) is None:
        time.sleep(_LOOK_S)
        if os.getpid() != pid:
            return
    os.environ[phalanx_gate.MARK] = phalanx_gate.place_of(os.environ)
    base = folders.base_folder()
    bundle, attempt = folders.join(base, place, name_of_script())
    folder = layout.rank_folder(layout.attempt_folder(bundle, attempt), place.rank)
    _describe(folder, place)
    atexit.register(_leave, folder, pid)
    starts = _start_companion(bundle)
    if starts or place.rank == 0:
        threading.Thread(target=exchange, args=(bundle, place), name="phalanx-meet", daemon=True).start()
    _beat(folder, place)


def _add_to_trainers(module: object) -> None:
    from phalanx.callbacks.transformers import add_by_default

    add_by_default(module)


def _describe(folder: Path, place: Place) -> None:
    facts = {
        "rank": place.rank,
        "size": place.size,
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "started": time.time(),
        "ranks_here": place.here,
        "command": sys.orig_argv[:64],
    }
    part = folder / ".process.part"
    private.write_text(part, json.dumps(facts))
    part.replace(folder / layout.PROCESS)


def _start_companion(bundle: Path) -> bool:
    """Once a node; whether this rank did it. Not as a child of the rank: what it computes would be taken for the rank's work."""
    try:
        claimed = os.open(bundle / folders.NODES / f"{os.uname().nodename}.claim", os.O_CREAT | os.O_EXCL, private.FILE)
    except FileExistsError:
        return False
    os.close(claimed)
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("PHALANX_RANK", "LD_PRELOAD"))}
    keep |= {"PHALANX": "0"}
    command = [os.environ.get("PHALANX_PYTHON") or sys.executable, "-m", "phalanx.embedded", str(bundle)]
    with open(bundle / folders.NODES / f"{os.uname().nodename}.log", "wb", opener=private.opener) as log:
        subprocess.run(
            ["/bin/sh", "-c", '"$@" & exit 0', "sh", "nice", "-n", "5", *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=keep,
            start_new_session=True,  # signals to the rank's group are not for it
            timeout=30,
            check=False,
        )
    return True


def _beat(folder: Path, place: Place) -> None:
    if (
        not faulthandler.is_enabled()
    ):  # a crash is told where we read it; a script that enables it itself overrules this
        faulthandler.enable(open(folder / layout.OUTPUT, "ab", opener=private.opener))  # noqa: SIM115 (for as long as we live)
    sys.path.insert(0, str(INSIDE))
    try:
        import phalanx_arrivals  # noqa: F401
        import phalanx_inside
        import phalanx_last_call  # noqa: F401
        import phalanx_libraries  # noqa: F401
        import phalanx_socket  # noqa: F401
        import phalanx_software  # noqa: F401
        import phalanx_trackers  # noqa: F401
        import phalanx_turning  # noqa: F401
    finally:
        sys.path.remove(str(INSIDE))
    libraries = phalanx_gate.LIBRARIES[0] if phalanx_gate.LIBRARIES else None
    phalanx_inside.beat_here(place.rank, place.size, str(folder / layout.HEARTBEAT), libraries)


def _leave(folder: Path, pid: int) -> None:
    """The exception that ends this rank, for who asks why it is gone. A rank that is killed leaves nothing."""
    if os.getpid() != pid:
        return
    value = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    with contextlib.suppress(Exception):  # the end of the rank is not ours to disturb
        if value is not None:
            text = "".join(traceback.format_exception(type(value), value, value.__traceback__))
            with open(folder / layout.OUTPUT, "a", encoding="utf-8", errors="replace", opener=private.opener) as file:
                file.write(text)
        told = {"at": time.time(), "exception": type(value).__name__ if value is not None else None}
        private.write_text(folder / LEAVING, json.dumps(told))
