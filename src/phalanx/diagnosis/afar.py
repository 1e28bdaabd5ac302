"""Logs where they lie: each host reads its own files and hands over what it found, never the logs; one verdict is made here.

Host and asker speak in two turns over the streams of one command (ssh, srun). The rank of a file may only be told among all files of the job, so
the host first says what it has, is told the names of all, and then reads:

    → {"version": …, "files": [["train.log", 1048576, 1700000000000000000, 4711]]}
    ← {"names": ["a/train.log", "b/train.log"], "read": {"train.log": "a/train.log"}}
    → {"seen": …, "traces": [["a/trace_0", …]]}

Files that several hosts see alike, on a shared file system, are read by one of them each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from phalanx import __version__
from phalanx.diagnosis.detectors import detect_all
from phalanx.diagnosis.naming import with_speakers
from phalanx.knowledge import Rule
from phalanx.model import Report, Unchecked
from phalanx.sources import Input, Observations, find_inputs
from phalanx.sources.shared import from_json, joined, settled, to_json
from phalanx.sources.traces import find_traces, read_traces

_MARK = "phalanx-diagnose "  # before the JSON: a login shell may print whatever it likes around it
_FIRST_S, _READING_S = 60.0, 3600.0
_MOST_TRACE = 64 << 20  # bytes of one trace that travels: traces are compared call by call, so they come whole

Collect = Callable[[Sequence[Input], Sequence[str]], Observations]
Told = tuple[str, int, int, int]  # name, size, time and inode of a file


@dataclass(slots=True)
class Party:
    """A host, the command that runs there, and what it said."""

    name: str
    command: Sequence[str]
    error: str = ""
    files: list[Told] = field(default_factory=list)
    read: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)


def serve(paths: Sequence[str], collect: Collect) -> int:
    """The host's side, on the standard streams."""
    try:
        inputs, unchecked = find_inputs(list(paths))
    except FileNotFoundError as error:
        _tell({"error": str(error)})
        return 2
    told = [(one, one.path.stat()) for one in inputs if one.path is not None]
    files = [[one.name, status.st_size, status.st_mtime_ns, status.st_ino] for one, status in told]
    _tell({"version": __version__, "files": files})
    asked = json.loads(sys.stdin.readline() or "{}")
    wanted = asked.get("read", {})
    mine = [replace(one, name=wanted[one.name]) for one in inputs if one.name in wanted]
    traces, logs = find_traces(mine)
    seen = collect(logs, asked.get("names", ()))
    seen.unchecked += unchecked
    contents = ((one.name, Path(one.path).read_bytes()) for one in traces if one.path)
    kept = [
        [name, b64encode(zlib.compress(data)).decode("ascii")] for name, data in contents if len(data) <= _MOST_TRACE
    ]
    _tell({"seen": to_json(settled(seen)), "traces": kept})
    return 0


def _tell(what: Mapping[str, Any]) -> None:
    sys.stdout.write(_MARK + json.dumps(what) + "\n")
    sys.stdout.flush()


def diagnose_afar(
    parties: Sequence[Party],
    rules: Sequence[Rule],
    judge: Callable[[Observations, Sequence[Rule]], tuple[Report, frozenset[str]]],
    say: Callable[[str], None],
) -> Report:
    """Ask all hosts at once and judge what they found together. Raises ValueError if none answers."""
    with ThreadPoolExecutor(max(len(parties), 1)) as pool:
        list(pool.map(_begin, parties))
        share_out([party for party in parties if not party.error])
        names = sorted({name for party in parties for name in party.read.values()})
        list(pool.map(lambda party: _finish(party, names), parties))
    answered = [party for party in parties if not party.error]
    for party in parties:
        if party.error:
            say(f"{party.name}: {party.error}")
    if not answered:
        raise ValueError("no host answered")
    count, size = len(names), sum(told[1] for party in answered for told in party.files if told[0] in party.read)
    say(f"read {count} file{'s' if count != 1 else ''} of {size / (1 << 20):.1f} MiB on {len(answered)} hosts")
    seen = joined((from_json(party.answer["seen"]) for party in answered), names)
    silent = [Unchecked(f"{party.name}: {party.error}", "its logs") for party in parties if party.error]
    found = replace(seen, events=[*seen.events, *detect_all(seen)], unchecked=[*seen.unchecked, *silent])
    return judge(_with_traces_of(answered, with_speakers(found)), rules)[0]


def share_out(parties: Sequence[Party]) -> None:
    """Which host reads what, under which name: its own files under its name, shared ones once, by whoever has least to do."""
    holders: dict[Told, list[Party]] = {}
    for party in parties:
        for told in party.files:
            holders.setdefault(told, []).append(party)
    load = dict.fromkeys((party.name for party in parties), 0)
    for told, having in sorted(holders.items(), key=lambda item: -item[0][1]):
        reader = min(having, key=lambda party: load[party.name])
        load[reader.name] += told[1]
        reader.read[told[0]] = told[0] if len(having) > 1 else f"{reader.name}/{told[0]}"


def _begin(party: Party) -> None:
    try:
        party.process = subprocess.Popen(
            party.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        party.error = f"{party.command[0]}: {error.strerror}"
        return
    told = _hear(party, _FIRST_S)
    if told is None:
        return
    if told.get("error") or told.get("version") != __version__:
        party.error = str(told.get("error") or f"it has phalanx {told.get('version')}, this machine {__version__}")
        party.process.kill()
        return
    party.files = [(str(name), int(size), int(at), int(inode)) for name, size, at, inode in told["files"]]


def _finish(party: Party, names: Sequence[str]) -> None:
    if party.error or party.process is None or party.process.stdin is None:
        return
    try:
        party.process.stdin.write(json.dumps({"names": list(names), "read": party.read}) + "\n")
        party.process.stdin.flush()
    except OSError as error:
        party.error = f"the connection broke: {error.strerror}"
        return
    party.answer = _hear(party, _READING_S) or {}


def _hear(party: Party, seconds: float) -> Mapping[str, Any] | None:
    """The next line for us; None, and the reason, where none comes."""
    process = party.process
    assert process is not None
    assert process.stdout is not None
    with ThreadPoolExecutor(1) as beside:
        coming = beside.submit(_next_line, process.stdout)
        try:
            line = coming.result(seconds)
        except TimeoutError:
            process.kill()
            party.error = f"no answer within {seconds:.0f} s"
            return None
    if line is None:
        said = process.stderr.read().strip().splitlines() if process.stderr is not None else []
        party.error = said[-1][:300] if said else f"it ended with status {process.wait()} and said nothing"
        return None
    told: Mapping[str, Any] = json.loads(line)
    return told


def _next_line(stream: IO[str]) -> str | None:
    for line in stream:
        _, mark, text = line.partition(_MARK)
        if mark:
            return text
    return None


def _with_traces_of(parties: Sequence[Party], seen: Observations) -> Observations:
    with tempfile.TemporaryDirectory(prefix="phalanx-traces-") as folder:
        for number, (name, packed) in enumerate(one for party in parties for one in party.answer["traces"]):
            place = Path(folder, str(number), *[part for part in name.split("/") if part not in ("", "..")])
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(zlib.decompress(b64decode(packed)))
        inputs = [one for part in sorted(Path(folder).iterdir()) for one in find_inputs([str(part)])[0]]
        traces, _ = find_traces(inputs)
        if not traces:
            return seen
        from phalanx.diagnosis.trace_facts import with_traces

        return with_traces(seen, list(read_traces(traces)))
