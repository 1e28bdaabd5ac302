"""A socket inside a rank that answers what only the rank itself may tell where nobody may look into it: its stacks.

The name is abstract (`@phalanx.inside.PID`): no file is left behind, whatever becomes of the rank. Asked by one line of JSON, it
answers by one document and hangs up; only processes of the same user, or root, are answered. docs/inside.md has the protocol.
Works with Python 3.8 and later, and runs nothing until it is asked.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import threading

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket
    from types import FrameType

SCHEMA = "phalanx.inside/1"
NAME = "\0phalanx.inside.%d"
THREAD = "phalanx-socket"
CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: pid, uid, gid
MOST_ASKED = 1 << 16
LONGEST = 120  # of a variable's text
PATIENCE_S = 5.0


def serve(about: dict[str, object], main: int, collectives: Callable[[], object]) -> None:
    """Answer from now on, in a thread of its own. `about` is part of every answer; `main` is the main thread's number."""
    import socket  # by now torch has loaded it

    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(NAME % os.getpid())
        listening.listen(4)
    except OSError:  # somebody has the name: the rank is then asked by nobody
        listening.close()
        return
    os.register_at_fork(after_in_child=listening.close)  # a worker must not hold the line of a rank that is gone
    answers: dict[str, Callable[[dict[str, object]], dict[str, object]]] = {
        "who": lambda asked: {
            "threads_of_ours": [one.native_id for one in threading.enumerate() if one.name.startswith("phalanx-")]
        },
        "stacks": lambda asked: {"threads": threads(main)},
        "collectives": lambda asked: {"collectives": collectives()},
        "tell": lambda asked: {"told": sys.modules["phalanx_trackers"].tell(asked)},
    }
    arguments = (listening, about, answers)
    threading.Thread(target=_listen, args=arguments, name=THREAD, daemon=True).start()


def _listen(
    listening: socket, about: dict[str, object], answers: dict[str, Callable[[dict[str, object]], dict[str, object]]]
) -> None:
    while True:
        try:
            line, _ = listening.accept()
        except OSError:
            return
        try:
            with line:
                line.settimeout(PATIENCE_S)
                _answer(line, about, answers)
        except Exception:  # who asks may go away; the rank must not mind
            pass


def _answer(
    line: socket, about: dict[str, object], answers: dict[str, Callable[[dict[str, object]], dict[str, object]]]
) -> None:
    from socket import SO_PEERCRED, SOL_SOCKET

    _, user, _ = CREDENTIALS.unpack(line.getsockopt(SOL_SOCKET, SO_PEERCRED, CREDENTIALS.size))
    if user not in (0, os.geteuid()):
        return
    asked = b""
    while not asked.endswith(b"\n") and len(asked) < MOST_ASKED:
        piece = line.recv(MOST_ASKED)
        if not piece:
            return
        asked += piece
    question = json.loads(asked)
    what = str(question.get("ask"))
    answer: dict[str, object] = {"schema": SCHEMA, "pid": os.getpid(), **about}
    if what in answers:
        try:
            answer.update(answers[what](question))
        except Exception as error:
            answer["error"] = "%s: %s" % (type(error).__name__, error)
    else:
        answer["error"] = "ask for one of " + ", ".join(answers)
    line.sendall(json.dumps(answer, default=str).encode("utf-8", "replace") + b"\n")


def threads(main: int) -> list[dict[str, object]]:
    """All threads but our own, in the form of `py-spy dump --json`: innermost frame first, the main thread's variables as text."""
    known = {thread.ident: thread for thread in threading.enumerate()}
    found: list[dict[str, object]] = []
    for ident, innermost in sorted(sys._current_frames().items(), key=lambda item: item[0] != main):
        thread = known.get(ident)
        name = thread.name if thread is not None else ""
        if name.startswith("phalanx-"):
            continue
        native = getattr(thread, "native_id", None) if thread is not None else None
        found.append(
            {
                "pid": os.getpid(),
                "thread_id": ident,
                "thread_name": "MainThread" if ident == main else name,
                "os_thread_id": native,
                "active": _runs(native),
                "owns_gil": False,
                "frames": _frames(innermost, ident == main),
            }
        )
    return found


def _frames(innermost: FrameType, with_values: bool) -> list[dict[str, object]]:
    frames: list[dict[str, object]] = []
    frame: FrameType | None = innermost
    while frame is not None:
        code = frame.f_code
        one: dict[str, object] = {"name": code.co_name, "filename": code.co_filename, "line": frame.f_lineno or 0}
        if with_values:
            plain = (int, float, bool, str, type(None))
            told = [(name, repr(value)) for name, value in frame.f_locals.items() if type(value) in plain]
            one["locals"] = [{"name": name, "repr": text} for name, text in told if len(text) <= LONGEST]
        frames.append(one)
        frame = frame.f_back
    return frames


def _runs(native: object) -> bool:
    try:
        with open("/proc/self/task/%s/stat" % native, "rb") as file:
            return file.read().rpartition(b") ")[2][:1] == b"R"
    except OSError:
        return False


def state_of(innermost: FrameType) -> int:
    """A number that changes when a thread gets on: with the instructions it is at, and with the variables of the script's own frames.
    A step of TensorFlow's is one call, always the same one; but its batch is a new one."""
    found: list[object] = []
    frame: FrameType | None = innermost
    while frame is not None and len(found) < 64:
        found.append((id(frame.f_code), frame.f_lasti))
        if "site-packages" not in frame.f_code.co_filename and "/lib/python" not in frame.f_code.co_filename:
            found += [id(value) for value in list(frame.f_locals.values())[:32]]
        frame = frame.f_back
    return hash(tuple(found))
