"""Which lock a rank's main thread waits for, and which other thread of the process holds it.

A lock of `threading` has no frame of its own: the thread stands at the line that takes it. The holder is a thread that stands inside of a
`with` block of the same lock: the same object where py-spy shows both variables, else the same expression in the same file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from phalanx.model import Frame
from phalanx.run.watch.stacks import ProcessStacks, Thread
from phalanx.sources.user_code import parse_source

_ADDRESS = re.compile(r"at (0x[0-9a-f]+)")
_LOCKS = re.compile(r"lock|mutex|semaphore|sem\b|guard", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LockWait:
    """A lock as the script calls it, and where the thread that holds it stands; no holder where none can be told."""

    name: str
    holder: str = ""
    frame: Frame | None = None

    def describe(self) -> str:
        """`waits for the lock `cache_lock`, which thread writer holds in flush() at io.py:31`, without the verb."""
        if self.frame is None:
            return f"for the lock `{self.name}`"
        function = f"{self.frame.function}() at " if not self.frame.function.startswith("<") else ""
        return f"for the lock `{self.name}`, which thread {self.holder} holds in {function}{self.frame.place}"


def lock_wait_of(stacks: ProcessStacks) -> LockWait | None:
    """The lock at whose taking the main thread stands; None if it stands elsewhere."""
    main = stacks.main
    if main is None or not main.frames or not main.frames[-1].is_user_code:
        return None
    frame, values = main.frames[-1], main.values[-1] if main.values else {}
    name = _taken_at(frame, values)
    if name is None:
        return None
    wanted = _object(name, values)
    for thread in stacks.threads:
        if thread is not main and (held := _holds(thread, name, wanted, frame.file)) is not None:
            return LockWait(name, thread.name or "without a name", held)
    return LockWait(name)


def _taken_at(frame: Frame, values: Mapping[str, str]) -> str | None:
    """The expression of the lock that this very line takes: `with lock:` or `lock.acquire()`."""
    tree = parse_source(frame.file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.With) and node.lineno <= frame.line < node.body[0].lineno:
            names = [ast.unparse(item.context_expr) for item in node.items]
            return next((name for name in names if _is_lock(name, values)), None)
        if isinstance(node, ast.Call) and node.lineno == frame.line and isinstance(node.func, ast.Attribute):
            name = ast.unparse(node.func.value)
            if node.func.attr == "acquire" and _is_lock(name, values):
                return name
    return None


def _is_lock(name: str, values: Mapping[str, str]) -> bool:
    """By the object that py-spy shows, else by how it is called."""
    return bool(_LOCKS.search(values[name])) if name in values else bool(_LOCKS.search(name))


def _object(name: str, values: Mapping[str, str]) -> str | None:
    """The address of the lock, or of the object whose attribute it is."""
    found = _ADDRESS.search(values.get(name, "") or values.get(name.split(".")[0], ""))
    return found[1] if found is not None else None


def _holds(thread: Thread, name: str, wanted: str | None, file: str) -> Frame | None:
    for number, frame in enumerate(thread.frames):
        values = thread.values[number] if thread.values else {}
        for other in _held_at(frame):
            if _is_same(name, wanted, other, _object(other, values), frame.file == file):
                return _innermost(thread, number)
    return None


def _is_same(name: str, wanted: str | None, other: str, own: str | None, in_one_file: bool) -> bool:
    """One object under whatever name; attributes of one object need one name; where objects are unknown, one name in one file."""
    has_one_name = name.split(".")[-1] == other.split(".")[-1]
    if wanted is None or own is None:
        return has_one_name and in_one_file
    return wanted == own and (has_one_name or "." not in name + other)


def _innermost(thread: Thread, number: int) -> Frame:
    """The user's last frame from the one that took the lock on: what it does while it holds it."""
    return next(frame for frame in reversed(thread.frames[number:]) if frame.is_user_code)


def _held_at(frame: Frame) -> Iterator[str]:
    """The expressions of `with` blocks around a line, those of locks among them."""
    tree = parse_source(frame.file) if frame.is_user_code else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.With) and node.body[0].lineno <= frame.line <= (node.end_lineno or 0):
            yield from (ast.unparse(item.context_expr) for item in node.items)
