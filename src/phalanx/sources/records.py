"""Small files that are records rather than logs: exit statuses and torchrun's error files.

exit_codes.json   {"0": 1, "2": -9}
error.json        {"message": {"message": "ValueError: …", "extraInfo": {"py_callstack": "Traceback …"}}}
"""

from __future__ import annotations

import json
import re
from typing import Any

from phalanx.model import Event, EventKind, Frame
from phalanx.sources.bundle import is_watch, read_exit, read_watch
from phalanx.sources.facts import is_facts, read_facts
from phalanx.sources.readers.exits import normal_code
from phalanx.sources.secrets import redact
from phalanx.sources.text import clean_text

_LARGEST = 1 << 20
_FRAME = re.compile(
    r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>[^\n]+)(?:\n\s+(?P<source>[^\n]+))?'
)
_EXIT_NAME = re.compile(r"exit[-_]?(?:codes?|status(?:es)?)?", re.I)


def read_record(name: str, head: bytes, rank: int | None) -> list[Event] | None:
    """The events of a record; None if the file is something else and wants to be read as a log."""
    if is_watch(name):
        return read_watch(name, head.decode("utf-8", "replace"))
    if is_facts(name):
        return read_facts(name, head.decode("utf-8", "replace"))
    if len(head) >= _LARGEST:
        return None
    if _EXIT_NAME.search(name.rsplit("/", 1)[-1]) and re.fullmatch(rb"\s*-?\d{1,3}\s*", head):
        return [_exit(name, rank, int(head))]
    if not head.lstrip().startswith(b"{"):
        return None
    try:
        loaded = json.loads(head.strip())
    except (ValueError, RecursionError):
        return None
    if not isinstance(loaded, dict):
        return None
    if (ended := read_exit(name, loaded)) is not None:
        return [ended]
    if str(loaded.get("schema", "")).startswith("phalanx."):
        return []  # a manifest, a report: what they state is taken from them elsewhere
    if loaded and all(
        re.fullmatch(r"(?:rank)?[0-9]{1,9}", str(key)) and isinstance(value, int) for key, value in loaded.items()
    ):
        return [_exit(name, int(key.removeprefix("rank")), value) for key, value in loaded.items()]
    if isinstance(loaded.get("message"), dict | str):
        return [_error_file(name, rank, loaded["message"])]
    return None


def _exit(name: str, rank: int | None, code: int) -> Event:
    normal = normal_code(code)
    who = f"rank {rank}" if rank is not None else "a process"
    return Event(EventKind.EXIT, f"{who} exited with {code}", name, 1, rank, source="record", data={"code": normal})


def _error_file(name: str, rank: int | None, message: dict[str, Any] | str) -> Event:
    if isinstance(message, str):
        text, stack = message, message
    else:
        extra = message.get("extraInfo") if isinstance(message.get("extraInfo"), dict) else {}
        text, stack = str(message.get("message", "")), str((extra or {}).get("py_callstack", ""))
    text, stack = clean_text(text), clean_text(stack)
    frames = tuple(
        Frame(match["file"], int(match["line"]), match["function"], (match["source"] or "").strip())
        for match in _FRAME.finditer(stack)
    )
    kind = text.split(":", 1)[0].strip()[:80]
    return Event(
        EventKind.EXCEPTION,
        redact(text.strip()),
        name,
        1,
        rank,
        source="error-file",
        frames=frames,
        data={"type": kind},
    )
