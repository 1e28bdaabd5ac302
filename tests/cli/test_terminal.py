"""Names in dumps, files, manifests and environments cannot drive the terminal, whatever verb prints them."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

OSC, BIDI, OVERWRITE = "\x1b]0;owned\x07", "\u202e", "\x1b[1A\x1b[Kfine\r"
EVIL = f"x{OSC}{BIDI}{OVERWRITE}\x9b2J[/red][link=http://x]y"


def on_terminal(folder: Path, *words: str) -> str:
    """What a terminal would get."""
    leader, follower = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-m", "phalanx", *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, env=variables,
    )  # fmt: skip
    os.close(follower)
    parts: list[bytes] = []
    while True:
        if select.select([leader], [], [], 60)[0]:
            try:
                data = os.read(leader, 65536)
            except OSError:
                break
            if not data:
                break
            parts.append(data)
        else:
            process.kill()
            break
    process.wait(60)
    os.close(leader)
    return b"".join(parts).decode("utf-8", "replace")


def dump(rank: int) -> dict[str, object]:
    entries = [
        {
            "record_id": number, "pg_id": 0, "process_group": [EVIL, EVIL], "collective_seq_id": number + 1, "p2p_seq_id": 0, "op_id": number + 1, "profiling_name": f"nccl:{EVIL}",
            "time_created_ns": 1, "input_sizes": [[4]], "input_dtypes": [EVIL], "output_sizes": [[4]], "output_dtypes": [EVIL], "state": "scheduled", "is_p2p": False, "frames": [{"name": EVIL, "filename": EVIL, "line": 3}],
        }
        for number in range(2 + rank)
    ]  # fmt: skip
    return {
        "version": "2.4",
        "rank": rank,
        "world_size": 2,
        "entries": entries,
        "pg_config": {"0": {"name": EVIL, "desc": EVIL, "ranks": "[0, 1]"}},
        "pg_status": {},
    }


def hostile_folder(folder: Path) -> Path:
    bundle = folder / "b"
    for rank in (0, 1):
        place = bundle / "attempt0" / f"rank{rank}"
        place.mkdir(parents=True)
        (place / "output.log").write_text(f"[rank{rank}]: RuntimeError: {EVIL}\n" if rank else "waiting\n")
        (place / "collectives-1.json").write_text(json.dumps(dump(rank)))
        (place / "process.json").write_text(json.dumps({"rank": rank, "host": EVIL, "pid": 3}))
        (place / "exit.json").write_text(
            json.dumps(
                {
                    "schema": "phalanx.exit/1",
                    "rank": rank,
                    "code": rank,
                    "how": EVIL,
                    "by": None,
                    "order": rank,
                    "why": {"text": EVIL},
                }
            )
        )
    watch = {"at": 1, "kind": "stall", "ranks": [1], "text": EVIL, "data": {"missing": [1], EVIL: EVIL}}
    (bundle / "attempt0" / "watch.jsonl").write_text(json.dumps(watch) + "\n")
    manifest = {
        "schema": "phalanx.bundle/1",
        "size": 2,
        "framework": EVIL,
        "command": ["python", EVIL],
        "name": EVIL,
        "host": EVIL,
        "reason": EVIL,
    }
    attempts = [{"attempt": number, "reason": EVIL, "first_ranks": [1], "restarted": True} for number in (0, 0)]
    (bundle / "manifest.json").write_text(json.dumps({**manifest, "attempts": attempts}))
    (folder / f"{EVIL.replace('/', '_')}.log").write_text("ValueError: x\n")
    (folder / "fr_0").write_text(json.dumps(dump(0)))
    (folder / "fr_1").write_text(json.dumps(dump(1)))
    return bundle


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "b"), ("diagnose", "--all", "b"), ("diagnose", "-f", "json", "b"), ("diagnose", "."), ("trace", "fr_0", "fr_1"), ("trace", "fr_0", "fr_1", "--rank", "1"),
        ("replay", "b", "--rank", "0"), ("compare", "b", "b"), ("diagnose", EVIL), ("run", "-n", "1", "--bundle", "kept", "evil.py"),
    ],
)  # fmt: skip
def test_no_field_reaches_the_terminal_raw(tmp_path: Path, words: tuple[str, ...]) -> None:
    hostile_folder(tmp_path)
    (tmp_path / "evil.py").write_text(f"print({EVIL!a})\nraise ValueError({EVIL!a})\n")
    shown = on_terminal(tmp_path, *words)
    assert shown.strip(), "it says something"
    assert "Traceback (most recent call last)" not in shown or words[0] == "run"
    assert "\x1b]" not in shown
    assert BIDI not in shown
    assert "\x9b" not in shown
    assert OVERWRITE not in shown
    assert "fine\r" not in shown.replace("\r\n", "")
