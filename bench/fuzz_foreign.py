"""Hands mangled manifests, recordings, dumps, frames and output to what reads them, and checks what comes out.

    python bench/fuzz_foreign.py [--seconds 60] [--seed 0] [--target NAME] [--only NUMBER]

Every case is made from the seed, the target and its number, so that `--only` makes it again. A case fails if anything but a
plain refusal is raised, if it takes longer than its size allows, or if a secret is left where it must not be.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pickle
import random
import resource
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from phalanx.diagnosis import diagnose_paths
from phalanx.remote.bundle_receiver import BundleReceiver
from phalanx.remote.link import Link, LinkError, Message
from phalanx.replay.compare import compare
from phalanx.replay.inside.phalanx_record.records import BrokenRecordError
from phalanx.replay.recordings import ReplayError, lines_of, open_recording
from phalanx.run.sealing import seal
from phalanx.sources.secrets import OutputRedactor, redact, redact_source

_MEMORY = 3 * 2**30
_PATIENCE = 6.0  # processor seconds of one case
_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 10**30, 1e308, float("nan"), "", "x", "\x1b]0;x\x07", "\u202e", "a" * 5000, "../../etc", "/dev/zero", [], {}, [[]], {"a": {}},
    [1, "x", None], {"": None}, "\ud800", "torch", "nccl:all_reduce", "[0, 1]",
)  # fmt: skip
_PIECES = (
    b"_token-", b"password=", b'"api_key": "', b"hunter2hunter2", b"://u:", b"@h/", b"ghp_" + b"a1B2" * 10, b"eyJ", b".", b"-----BEGIN RSA PRIVATE KEY-----", b"-----END RSA PRIVATE KEY-----",
    b"\n", b"\r", b" ", b"\\", b'"', b"'", b"=", b": ", b"\xff", b"\x00", b"\xf0\x9f", b"bearer ", b"cookie: ", b"key", b"a", b"0123456789abcdef", b"sk-", b"--token ", b"curl -u a:", b"\x1b[31m",
)  # fmt: skip


def _entry(chance: Random, number: int) -> dict[str, Any]:
    return {
        "record_id": number, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": number + 1, "p2p_seq_id": 0, "op_id": number + 1, "profiling_name": "nccl:all_reduce",
        "time_created_ns": 1, "input_sizes": [[4]], "input_dtypes": ["Float"], "output_sizes": [[4]], "output_dtypes": ["Float"], "state": chance.choice(["scheduled", "started", "completed"]),
        "is_p2p": False, "retired": False, "timeout_ms": 600000, "frames": [{"name": "f", "filename": "train.py", "line": 3}],
    }  # fmt: skip


def _dump(chance: Random, rank: int) -> dict[str, Any]:
    entries = [_entry(chance, number) for number in range(chance.randrange(6))]
    groups = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    return {"version": "2.4", "rank": rank, "world_size": 2, "entries": entries, "pg_config": groups, "pg_status": {}}


def _mangle(chance: Random, value: Any, rate: float) -> Any:
    """The same document with some of its parts replaced."""
    if chance.random() < rate:
        return chance.choice(_ODD)
    if isinstance(value, dict):
        items = [
            (name if chance.random() > rate / 4 else chance.choice(("", "k", "\x00", "9" * 40)), one)
            for name, one in value.items()
        ]
        return {name: _mangle(chance, one, rate) for name, one in items if chance.random() > rate / 4}
    if isinstance(value, list):
        return [_mangle(chance, one, rate) for one in value for _ in range(chance.choice((1, 1, 1, 1, 2)))]
    return value


def _cut(chance: Random, data: bytes) -> bytes:
    """The bytes as they are, mostly; else cut off, with bits flipped, repeated, or something else."""
    match chance.randrange(8):
        case 0:
            return data[: chance.randrange(len(data) + 1)]
        case 1:
            changed = bytearray(data)
            for _ in range(chance.randrange(1, 20)):
                if changed:
                    changed[chance.randrange(len(changed))] = chance.randrange(256)
            return bytes(changed)
        case 2:
            return data * chance.randrange(3)
        case 3:
            return chance.choice((b"", b"\x00" * 100, b"[" * 100_000, b'{"a":' * 50_000, os.urandom(64)))
        case _:
            return data


def _json(chance: Random, value: Any) -> bytes:
    return _cut(chance, json.dumps(_mangle(chance, value, chance.choice((0.0, 0.02, 0.1)))).encode("utf-8", "replace"))


def _bundle(chance: Random, folder: Path) -> Path:
    """A bundle with a recording, mangled somewhere."""
    manifest = {
        "schema": "phalanx.bundle/1", "command": ["python", "train.py", "--lr", "1"], "size": 2, "state": "ended", "framework": "torch", "name": "train", "started": 1.0, "host": "h", "roles": [],
        "attempts": [{"attempt": 0, "reason": "rank 1 ended with exit status 1", "first_ranks": [1], "restarted": True, "started": 1.0}], "status": 1, "reason": "x",
    }  # fmt: skip
    bundle = folder / "b"
    lines: list[Any] = [
        {"k": "begin", "at": 1.0}, {"k": "group", "g": "0", "ranks": [0, 1], "name": "default"}, {"k": "step", "s": 1, "random": {}},
        {"k": "call", "n": 0, "g": "0", "q": 0, "s": 1, "op": "allreduce_", "in": ["00"], "shapes": [["float32", 4]], "line": "train.py:3"},
        {"k": "done", "n": 0, "out": ["00"], "at": [0, 8, 16], "share": [0, 16], "of": 16}, {"k": "exception", "s": 1, "what": "ValueError: password=hunter2hunter2"}, {"k": "end", "at": 2.0},
    ]  # fmt: skip
    meta = {
        "schema": "phalanx.record/1",
        "rank": 0,
        "size": 2,
        "mode": "full",
        "sources": {"train.py": "00"},
        "framework": "torch",
        "seed": 3,
        "software": {"torch": "2.13"},
        "steps": 1,
    }
    exited = {
        "schema": "phalanx.exit/1",
        "rank": 1,
        "code": 1,
        "how": "exit status 1",
        "by": None,
        "order": 0,
        "why": {"text": "ValueError"},
    }
    watch = {"at": 1, "kind": "stall", "ranks": [1], "text": "nothing moves", "data": {"missing": [1]}}
    for rank in (0, 1):
        record = bundle / "attempt0" / f"rank{rank}" / "record"
        record.mkdir(parents=True)
        (record / "meta.json").write_bytes(_json(chance, {**meta, "rank": rank}))
        (record / "calls.jsonl").write_bytes(_cut(chance, b"\n".join(_json(chance, line) for line in lines) + b"\n"))
        (record / "results-0000.safetensors").write_bytes(_cut(chance, (2).to_bytes(8, "little") + b"{}" + bytes(64)))
        place = record.parent
        (place / "output.log").write_bytes(_cut(chance, b"step 1\n[rank1]: ValueError: bad sample\n"))
        (place / "exit.json").write_bytes(_json(chance, {**exited, "rank": rank}))
        (place / "environment.json").write_bytes(_json(chance, {"RANK": str(rank), "HF_TOKEN": "[redacted]"}))
        (place / "collectives-1.json").write_bytes(_json(chance, _dump(chance, rank)))
    (bundle / "attempt0" / "watch.jsonl").write_bytes(_json(chance, watch) + b"\n" + _json(chance, watch))
    (bundle / "manifest.json").write_bytes(_json(chance, manifest))
    if chance.random() < 0.2:
        victim = chance.choice([path for path in bundle.rglob("*") if path.is_file()])
        victim.unlink()
        os.mkfifo(victim) if chance.random() < 0.5 else victim.symlink_to("/dev/zero")
    return bundle


def fuzz_manifests(chance: Random, folder: Path) -> str:
    """`diagnose` on a bundle."""
    diagnose_paths([str(_bundle(chance, folder))])
    return ""


def fuzz_recordings(chance: Random, folder: Path) -> str:
    """What `replay` and `compare` read before they run anything, and what seals a bundle."""
    bundle = _bundle(chance, folder)
    with contextlib.suppress(ReplayError, BrokenRecordError, OSError):
        recording = open_recording(bundle)
        for rank in recording.ranks:
            recording.environment(rank)
            lines_of(recording.folder(rank))
        compare(recording, recording)
    seal(bundle)
    return "".join(
        f"{path.name} holds a secret"
        for path in bundle.rglob("calls.jsonl")
        if path.is_file() and b"password=hunter2hunter2" in path.read_bytes()
    )


def fuzz_dumps(chance: Random, folder: Path) -> str:
    """Flight-recorder dumps as pickles and as JSON."""
    for rank in (0, 1):
        dump = _mangle(chance, _dump(chance, rank), chance.choice((0.0, 0.02, 0.1)))
        data = (
            json.dumps(dump).encode("utf-8", "replace")
            if chance.random() < 0.3
            else pickle.dumps(dump, protocol=chance.choice((2, 4)))
        )
        (folder / f"nccl_trace_rank_{rank}").write_bytes(_cut(chance, data))
    diagnose_paths([str(folder)])
    return ""


def fuzz_frames(chance: Random, folder: Path) -> str:
    """Frames of an agent that breaks every rule, and what a driver keeps of them."""
    ours, theirs = socket.socketpair()
    messages: list[Any] = [
        {"kind": "hello", "protocol": 1, "nonce": "0" * 32}, {"kind": "proof", "proof": "x"}, {"kind": "output", "rank": 0}, {"kind": "beat", "ranks": {"0": {}}},
        {"kind": "file", "path": "attempt0/rank0/stacks-1.txt", "offset": 0, "last": True}, {"kind": "observation", "what": "stall", "ranks": [0], "text": "x", "facts": {}},
    ]  # fmt: skip
    data = b""
    for _ in range(chance.randrange(1, 6)):
        header, payload = _json(chance, chance.choice(messages))[:60_000], chance.choice((b"", b"x" * 100))
        data += len(header).to_bytes(4, "big") + len(payload).to_bytes(4, "big") + header + payload
    theirs.sendall(_cut(chance, data)[:100_000])
    theirs.shutdown(socket.SHUT_WR)
    link = Link.over_pipes(ours.fileno(), ours.fileno())
    receiver = BundleReceiver(folder / "kept", lambda text: None)
    receiver.writer.begin({"size": 1})
    receiver.begin_attempt(0, 1)
    try:
        if chance.random() < 0.3:
            link.prove("token", is_driver=True)
        link._limit = 1 << 20
        while (message := link.receive()) is not None:
            _keep(receiver, message)
    except (
        LinkError,
        OSError,
        ValueError,
        TypeError,
        KeyError,
    ):  # what the driver's reading thread takes for a broken line
        pass
    finally:
        receiver.close()
        receiver.writer.finish(0, "done")
        ours.close()
        theirs.close()
    return ""


def _keep(receiver: BundleReceiver, message: Message) -> None:
    match message.kind:
        case "output":
            receiver.output((0,), int(message.data["rank"]), message.payload)
        case "file":
            receiver.file((0,), message)
        case "observation":
            receiver.observation((0,), "h", message)


def fuzz_redactor(chance: Random, folder: Path) -> str:
    """Output of any kind: linear time, and the same whether it comes in one piece or line by line."""
    data = b"".join(
        chance.choice(_PIECES) * chance.choice((1, 1, 1, 2, 50, 500)) for _ in range(chance.randrange(1, 60))
    )[:200_000]
    value = "".join(chance.choice("abcXYZ019+/") for _ in range(12))
    redactor = OutputRedactor()
    redactor.hide([value])
    began = time.process_time()
    cleaned = redactor.clean(data + value.encode() + b"\n")
    text = data.decode("utf-8", "replace")
    redact(text)
    redact_source(text[:20_000])
    redactor.is_settled(data)
    seconds = time.process_time() - began
    if value.encode() in cleaned:
        return "a value that is a secret is left"
    return f"{seconds:.1f} s for {len(data)} bytes" if seconds > 0.5 + 8e-6 * len(data) else ""


TARGETS: dict[str, Callable[[Random, Path], str]] = {
    "manifests": fuzz_manifests,
    "recordings": fuzz_recordings,
    "dumps": fuzz_dumps,
    "frames": fuzz_frames,
    "redactor": fuzz_redactor,
}


def run_case(target: str, seed: int, number: int) -> str:
    """What is wrong with one case; nothing if all is well."""
    began = time.process_time()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            wrong = TARGETS[target](random.Random(f"{seed}/{target}/{number}"), Path(scratch))
        except Exception:
            return traceback.format_exc()
    seconds = time.process_time() - began
    return wrong or (f"took {seconds:.1f} s of processor time" if seconds > _PATIENCE else "")


def fuzz(target: str, seed: int, seconds: float) -> tuple[int, list[str]]:
    """So many seconds of processor time on one target: how many cases, and what went wrong."""
    stop = time.process_time() + seconds
    number, failed = 0, []
    while time.process_time() < stop and len(failed) < 20:
        if wrong := run_case(target, seed, number):
            failed.append(f"{target} {number} of seed {seed}: {wrong}")
        number += 1
    return number, failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="processor time in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=sorted(TARGETS), action="append")
    parser.add_argument("--only", type=int, help="this case alone")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    chosen = arguments.target or sorted(TARGETS)
    bad = 0
    for target in chosen:
        if arguments.only is not None:
            wrong = run_case(target, arguments.seed, arguments.only)
            count, failed = 1, [wrong] if wrong else []
        else:
            count, failed = fuzz(target, arguments.seed, arguments.seconds / len(chosen))
        bad += len(failed)
        print(f"{target}: {count} cases, {len(failed)} failed", *failed, sep="\n", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
