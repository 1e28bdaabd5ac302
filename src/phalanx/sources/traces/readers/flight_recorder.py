"""PyTorch's flight recorder: dumps of NCCL, Gloo and other backends, as pickle or JSON, of versions 2.0 to 2.10.

{"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
 "pg_status": {"0": {"last_enqueued_collective": 7, "last_started_collective": -1, "last_completed_collective": 6}},
 "entries": [{"record_id": 6, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 7, "p2p_seq_id": 0,
              "profiling_name": "nccl:all_reduce", "input_sizes": [[4]], "output_sizes": [[4]], "input_dtypes": ["Float"],
              "output_dtypes": ["Float"], "state": "scheduled", "retired": False, "is_p2p": False,
              "time_created_ns": 1758610505592849034, "time_discovered_started_ns": None,
              "time_discovered_completed_ns": None, "frames": [{"name": "train", "filename": "train.py", "line": 88}]}]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from phalanx.model.ranks import LARGEST_WORLD
from phalanx.sources.traces.protocol import Group, GroupStatus, RankTrace, UnreadableError

if TYPE_CHECKING:
    from phalanx.sources.traces.flight_columns import Columns

# What reads a dump is loaded where one is read: every diagnosis asks this module whether a file is a dump.
NAME = "flight recorder"
_NAMES = re.compile(r"(?:trace|dump|collectives)[-_](?:rank[-_]?)?\d+(?:\.\w+)*$", re.I)
_KEYS = (b"pg_config", b"pg_status", b"nccl_comm_state", b"nccl_version", b"comm_lib_version", b"profiling_name")
_TRIES = 64  # places from the end at which a cut dump may have broken off
_WORTH_LOOKING = 1 << 13  # bytes of a dump in which calls repeat
_RANKS = re.compile(r"\[[\d, ]*\]")


def recognises(name: str, head: bytes) -> bool:
    """Pickles that begin with a dump's keys or bear a dump's name, and JSON with these keys."""
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return any(key in head for key in _KEYS) or bool(_NAMES.search(name))
    text = head.lstrip()
    if b'"schemaVersion"' in text or b'"communicators"' in text:  # a profiler's trace, a RAS report: they share keys
        return False
    return text[:1] == b"{" and any(b'"%b"' % key in text for key in _KEYS)


def read(name: str, data: bytes) -> Iterator[RankTrace]:
    """The calls of the one rank that wrote the dump."""
    from phalanx.sources.traces.flight_columns import columns_of, repeated
    from phalanx.sources.traces.repeats import read_repeated

    found = read_repeated(data) if len(data) > _WORTH_LOOKING and data[:1] == b"\x80" else None
    dump, truncated = (found.dump, False) if found is not None else _load(data)
    if dump is None and truncated:  # that there is such a file is known of its rank, if no more
        yield RankTrace(NAME, truncated=True, notes=[(f"{name}: it breaks off or is damaged", "the whole file")])
        return
    if isinstance(dump, list):
        dump = {"entries": dump}  # before version 2 a dump was the bare list
    if not isinstance(dump, dict) or not isinstance(dump.get("entries", []), list):
        raise UnreadableError("it is not a flight-recorder dump", "the file that PyTorch wrote")
    entries = [entry for entry in dump.get("entries", []) if type(entry) is dict]
    config = _config(dump.get("pg_config"))
    columns = columns_of(entries, config)
    notes = []
    if truncated:
        notes.append((f"{name}: cut short, {len(entries)} calls of it could be read", "the whole file"))
    if "entries" not in dump:
        notes.append((f"{name}: it lists no calls", "a dump with `includeCollectives`"))
    yield RankTrace(
        form=f"{NAME} {_version(dump)}",
        rank=_rank(dump, columns),
        groups=columns.groups,
        columns=columns.lists,
        rows=repeated(columns, found) if found is not None else None,
        status=_status(dump.get("pg_status"), columns, config),
        dropped=columns.dropped,
        truncated=truncated,
        host=_text(dump.get("host_name")),
        world_size=_world_size(dump, columns, config),
        notes=notes,
    )


def _load(data: bytes) -> tuple[Any, bool]:
    """The dump, and whether it had to be mended because it breaks off; no dump where nothing of it could be read."""
    if data[:1] != b"\x80":
        return _load_json(data)
    from phalanx.sources.traces.unpickling import DAMAGED, load_plain

    try:
        return load_plain(data), False
    except DAMAGED:
        return _mended(data), True


def _mended(data: bytes) -> Any:
    """A cut pickle, ended after its last whole entry: PyTorch writes `}(` … `u` around each, and none of them refers forward."""
    from phalanx.sources.traces.unpickling import DAMAGED, load_plain

    stop = len(data)
    for _ in range(_TRIES):
        stop = data.rfind(b"u}(", 0, stop)
        if stop < 0:
            return None
        try:
            dump = load_plain(data[: stop + 1] + b"eu.")
        except (*DAMAGED, TypeError):
            continue
        if isinstance(dump, dict) and isinstance(dump.get("entries"), list):
            return dump
    return None


def _load_json(data: bytes) -> tuple[Any, bool]:
    try:
        return json.loads(data), False
    except (ValueError, RecursionError):
        text = data.decode("utf-8", "replace")
        stop = len(text)
        for _ in range(_TRIES):
            stop = text.rfind("},{", 0, stop)
            if stop < 0:
                break
            try:
                return json.loads(text[: stop + 1] + "]}"), True
            except (ValueError, RecursionError):
                continue
        return None, True


def _config(raw: object) -> dict[str, Group]:
    """Groups by name. Gloo writes one without a name and members: it tells nothing."""
    found = {}
    for name, group in raw.items() if isinstance(raw, dict) else ():
        if isinstance(group, dict) and isinstance(name, str):
            members = _members(group.get("ranks"))
            if members:
                found[name] = Group(name[:200], _text(group.get("desc")) or "", members)
    return found


def _members(raw: object) -> tuple[int, ...]:
    if isinstance(raw, str):
        return _members_of_text(raw)
    return tuple(item for item in raw if type(item) is int and item >= 0) if isinstance(raw, list | tuple) else ()


@lru_cache(maxsize=4096)
def _members_of_text(text: str) -> tuple[int, ...]:
    return tuple(json.loads(text)) if _RANKS.fullmatch(text) else ()


def _version(dump: dict[Any, Any]) -> str:
    return (_text(dump.get("version")) or "1")[:12]


def _text(raw: object) -> str | None:
    return raw[:200] if isinstance(raw, str) and raw else None


def _rank(dump: dict[Any, Any], columns: Columns) -> int | None:
    """The rank, if the dump has it or only one rank is a member of all its groups."""
    if type(stated := dump.get("rank")) is int:
        return stated
    members = [set(group.members) for group in columns.configured if group.members]
    common = set.intersection(*members) if members else set()
    return common.pop() if len(common) == 1 else None


def _world_size(dump: dict[Any, Any], columns: Columns, config: dict[str, Group]) -> int | None:
    """The size of the group of all ranks, as `phalanx run` writes it, or that of the first group, or of the one that says so."""
    if type(stated := dump.get("world_size")) is int and 0 < stated <= LARGEST_WORLD:
        return stated
    for group in config.values():
        if group.members and (group.description == "default_pg" or group.name == "0"):
            return len(group.members)
    return columns.world_size


def _status(raw: object, columns: Columns, config: dict[str, Group]) -> list[GroupStatus]:
    """`pg_status` goes by each rank's own numbers of its groups, the rest of the dump by names."""
    if not isinstance(raw, dict):
        return []
    numbers = sorted(int(key) for key in raw if isinstance(key, str | int) and str(key).isdigit())
    names = columns.group_of_number | _by_order(numbers, columns, config)
    found = []
    for number in numbers:
        said = raw.get(str(number), raw.get(number))
        if number in names and isinstance(said, dict) and not columns.counts_operations:
            values = [
                _count(said.get(f"last_{what}_collective", said.get(f"last_{what}_seq_id")))
                for what in ("enqueued", "started", "completed")
            ]
            found.append(GroupStatus(names[number], *values))
    return found


def _by_order(numbers: list[int], columns: Columns, config: dict[str, Group]) -> dict[int, int]:
    """Numbers are given in the order in which groups are made, and so are names that count: pair them if all that is known fits."""
    if len(numbers) != len(config) or not all(name.isdigit() for name in config):
        return {}
    pairs = {
        number: columns.position_of(config[name]) for number, name in zip(numbers, sorted(config, key=int), strict=True)
    }
    fits = all(pairs.get(number) == position for number, position in columns.group_of_number.items())
    return pairs if fits else {}


def _count(raw: object) -> int | None:
    """JSON has these as text; -1 is for never."""
    try:
        return int(raw) if isinstance(raw, int | str) else None
    except ValueError:
        return None
