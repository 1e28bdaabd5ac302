"""What ranks write into the bundle themselves is redacted when the attempt is over, and stays valid JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

from phalanx.run.sealing import seal


def test_lines_of_a_recording_are_redacted_and_stay_json(tmp_path: Path) -> None:
    record = tmp_path / "rank0" / "record"
    record.mkdir(parents=True)
    lines = [
        {"k": "call", "op": "all_reduce", "s": 1},
        {"k": "exception", "what": 'ValueError: login "bob" with password="correct horse" failed'},
        {"k": "exception", "what": "-----BEGIN PRIVATE KEY-----\nMIIEabc"},
        {"k": "exception", "what": "it was opensesame99"},
    ]
    (record / "calls.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (record / "meta.json").write_text(json.dumps({"api_key": "abcd1234efgh", "mode": "full"}, indent=1))
    tensor = os.urandom(64) + b"password=hunter2hunter2"
    (record / "results-0000.safetensors").write_bytes(tensor)
    seal(tmp_path, {"opensesame99"})
    after = [json.loads(line) for line in (record / "calls.jsonl").read_text().splitlines()]
    assert after[0] == lines[0]
    text = json.dumps(after)
    for secret in ("correct horse", "MIIEabc", "opensesame99"):
        assert secret not in text
    assert json.loads((record / "meta.json").read_text()) == {"api_key": "[redacted]", "mode": "full"}
    assert (record / "results-0000.safetensors").read_bytes() == tensor, "bits of a recording are never changed"
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.rglob("*"))


def test_pipes_and_links_are_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    outside = tmp_path.parent / f"{tmp_path.name}-outside.json"
    outside.write_text('{"password": "hunter2hunter2"}')
    (tmp_path / "link.json").symlink_to(outside)
    seal(tmp_path)
    assert "hunter2hunter2" in outside.read_text()


def test_random_states_are_no_secrets(tmp_path: Path) -> None:
    """They are bytes, in which something that looks like a token may stand by chance."""
    token = "AKIA" + "Z7QX2J4K6L8M0N1P"
    state = {
        "schema": "phalanx.checkpoint/1",
        "values": {"note": f"key {token}"},
        "random": {"torch": f"AAAA {token} =="},
    }
    (tmp_path / "state.json").write_text(json.dumps(state))
    seal(tmp_path)
    kept = json.loads((tmp_path / "state.json").read_text())
    assert kept["random"] == state["random"]
    assert token not in kept["values"]["note"]
    line = {"k": "epoch", "states": {"torch": f"AAAA {token} =="}}
    (tmp_path / "calls.jsonl").write_text(json.dumps(line) + "\n")
    seal(tmp_path)
    assert json.loads((tmp_path / "calls.jsonl").read_text()) == line
