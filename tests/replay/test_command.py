"""A bundle may come from anybody: what a replay runs, and what a hostile bundle cannot make it run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phalanx.cli.recording import with_mode
from phalanx.replay.beginning import begin_at
from phalanx.replay.command import command_of, variables_of
from phalanx.replay.inside.phalanx_record.alone import RefusedObjectError, load_plain
from phalanx.replay.recordings import Recording, ReplayError, open_recording
from phalanx.run.recorder import Recorder

from .jobs import replay


def made(folder: Path, *command: str, mode: str = "full", size: int = 2) -> Recording:
    bundle = folder / "bundle"
    for rank in range(size):
        record = bundle / "attempt0" / f"rank{rank}" / "record"
        record.mkdir(parents=True)
        meta: dict[str, Any] = {"schema": "phalanx.record/1", "rank": rank, "mode": mode, "sources": {}}
        (record / "meta.json").write_text(json.dumps(meta))
        (record / "calls.jsonl").write_text("")
    (bundle / "manifest.json").write_text(json.dumps({"command": ["/usr/bin/evil", *command], "size": size}))
    return open_recording(bundle)


def test_the_script_below_this_folder_is_run_by_this_interpreter(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    command = command_of(made(tmp_path, "train.py", "--lr", "1"), tmp_path, None, None, None)
    assert "evil" not in command.argv[0]
    assert command.argv[1:] == ("train.py", "--lr", "1")
    given = command_of(open_recording(tmp_path / "bundle"), tmp_path, None, ["--lr", "2"], None)
    assert given.argv[1:] == ("train.py", "--lr", "2")


@pytest.mark.parametrize(
    "words",
    [
        ("/usr/lib/python3/dist-packages/evil.py",),
        ("../evil.py",),
        ("bundle/evil.py",),
        ("-c", "print(1)"),
        ("-m", "pip", "install", "evil"),
        ("-m", "os;evil"),
        ("evil.sh",),
        (),
    ],
)
def test_nothing_else_is_run(tmp_path: Path, words: tuple[str, ...]) -> None:
    recording = made(tmp_path, *words)
    (tmp_path / "bundle" / "evil.py").touch()
    (tmp_path.parent / "evil.py").touch()
    with pytest.raises(ReplayError):
        command_of(recording, tmp_path, None, None, None)


@pytest.mark.parametrize("name", ["bundle.evil", "bundle", "bundle.pack", "linked", "pack.train", "alias.evil"])
def test_a_module_of_the_bundle_is_not_run(tmp_path: Path, name: str) -> None:
    recording = made(tmp_path, "-m", name)
    bundle = tmp_path / "bundle"
    for file in ("evil.py", "__main__.py", "__init__.py", "pack/__init__.py", "pack/__main__.py"):
        (bundle / file).parent.mkdir(exist_ok=True)
        (bundle / file).write_text("raise SystemExit(66)")
    (tmp_path / "linked.py").symlink_to(bundle / "evil.py")
    (tmp_path / "alias").symlink_to(bundle)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").symlink_to(bundle / "evil.py")
    (tmp_path / "pack" / "train.py").touch()
    with pytest.raises(ReplayError, match="in the bundle itself"):
        command_of(recording, tmp_path, None, None, None)


def test_a_module_of_ones_own_is_run_and_its_file_shown(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    for name in ("__init__.py", "train.py", "__main__.py"):
        (tmp_path / "own" / name).touch()
    recording = made(tmp_path, "-m", "own.train", "--lr", "1")
    command = command_of(recording, tmp_path, None, None, None)
    assert command.argv[1:] == ("-m", "own.train", "--lr", "1")
    assert str(tmp_path / "own" / "train.py") in command.shown()
    (tmp_path / "bundle" / "manifest.json").write_text(json.dumps({"command": ["x", "-m", "own"], "size": 2}))
    again = command_of(open_recording(tmp_path / "bundle"), tmp_path, None, None, None)
    assert again.file == tmp_path / "own" / "__main__.py"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "other.py").touch()
    (here / "train.py").symlink_to(tmp_path / "other.py")
    with pytest.raises(ReplayError, match="not below"):
        command_of(made(here, "train.py"), here, None, None, None)


def test_a_redacted_argument_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    with pytest.raises(ReplayError, match="after `--`"):
        command_of(made(tmp_path, "train.py", "--api-key", "[redacted]"), tmp_path, None, None, None)


def test_no_variable_that_loads_code_is_taken_from_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nos.environ['EPOCHS'], os.environ.get('LD_PRELOAD'), 'PYTHONPATH'\n")
    hostile = dict.fromkeys(
        ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONBREAKPOINT", "LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "CXX", "HOME"),
        "evil",
    )
    hostile |= {"OTHER": "evil", "NCCL_NET_PLUGIN": "evil", "SECRET": "[redacted]"}
    wanted = {"EPOCHS": "3", "OMP_NUM_THREADS": "2", "RANK": "1", "PYTHONHASHSEED": "7"}
    found = variables_of(hostile | wanted, {"PATH": "/bin"}, tmp_path)
    assert found == {"PATH": "/bin", **wanted}


def test_objects_are_plain_data_or_nothing() -> None:
    import collections
    import fractions
    import pickle

    plain = {"a": [1, 2.5, "x", None, True, b"y", (1, {2})], "b": collections.OrderedDict(c=3)}
    assert load_plain(pickle.dumps(plain)) == plain
    with pytest.raises(RefusedObjectError, match="--trust-objects"):
        load_plain(pickle.dumps(fractions.Fraction(1, 2)))
    with pytest.raises(RefusedObjectError):
        load_plain(b"cos\nsystem\n(S'true'\ntR.")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["--record", "-n", "2", "train.py"], ["--record=light", "-n", "2", "train.py"]),
        (["-n", "2", "--record", "train.py", "--record"], ["-n", "2", "--record=light", "train.py", "--record"]),
        (["--record=full", "train.py"], ["--record=full", "train.py"]),
        (["-n", "2", "--", "./x", "--record"], ["-n", "2", "--", "./x", "--record"]),
    ],
)
def test_the_mode_may_be_left_out(given: list[str], found: list[str]) -> None:
    assert with_mode(given, {"-n", "--record"}) == found


def test_the_salt_of_hashes_is_chosen_by_rank_and_not_over_the_users(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, {"seed": 2**32 - 2}, frozenset({"torch"}))
    salts = [recorder.variables(tmp_path, rank, 2, {})["PYTHONHASHSEED"] for rank in range(3)]
    assert len(set(salts)) == 3
    assert all(0 < int(salt) < 2**32 for salt in salts)
    assert "PYTHONHASHSEED" not in recorder.variables(tmp_path, 0, 2, {"PYTHONHASHSEED": "5"})


def keep(recording: Recording, rank: int, kind: str, *steps: int) -> None:
    for step in steps:
        folder = recording.folder(rank) / f"{kind}-{step:08d}"
        folder.mkdir()
        (folder / "state.json").write_text("{}")


def test_where_a_replay_begins(tmp_path: Path) -> None:
    full = made(tmp_path, "train.py")
    keep(full, 0, "checkpoint", 4, 8, 12)
    keep(full, 1, "checkpoint", 4, 8)
    (full.folder(0) / ".checkpoint-00000016.part").mkdir()
    assert begin_at(full, [0], None) == 0
    assert begin_at(full, [0], 13) == 12
    assert begin_at(full, [0, 1], 13) == 8
    assert begin_at(full, [0], 3) == 0


def test_where_a_replay_of_a_ring_begins(tmp_path: Path) -> None:
    ring = made(tmp_path, "train.py", mode="ring")
    written = {0: [(4, 9), (12, 17)], 1: [(6, 9), (12, 18)]}
    for rank, windows in written.items():
        lines = [json.dumps({"begin": a, "s": b, "k": "written"}, separators=(",", ":")) for a, b in windows]
        (ring.folder(rank) / "calls.jsonl").write_text("\n".join(lines))
    keep(ring, 0, "snapshot", 4, 8, 12, 16)
    keep(ring, 0, "checkpoint", 10)
    assert begin_at(ring, [0], None) == 8  # rank 1 has nothing of step 4
    assert begin_at(ring, [0], 11) == 8
    assert begin_at(ring, [0], 13) == 12
    with pytest.raises(ReplayError, match="begins at step 8"):
        begin_at(ring, [0], 5)


def test_what_is_no_recording_is_told(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="no bundle"):
        open_recording(tmp_path)
    made(tmp_path, "train.py")
    with pytest.raises(ReplayError, match="--record"):
        open_recording(tmp_path / "bundle", attempt=3)


def test_a_log_that_cannot_be_read_ends_the_replay_before_the_script_runs(tmp_path: Path) -> None:
    """Python goes on where its sitecustomize fails: the script would run for real, as one rank of several."""
    (tmp_path / "train.py").write_text("open('ran', 'w').close()\n")
    made(tmp_path, "train.py")
    log = tmp_path / "bundle" / "attempt0" / "rank0" / "record" / "calls.jsonl"
    log.write_text('{"k":"call","g":"0"}\n')
    done = replay(tmp_path, "bundle", "--rank", "0")
    assert done.status == 2
    assert "cannot be replayed" in done.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "bomb",
    [
        b"\x80\x02cbuiltins\nbytearray\nq\x00J\xff\xff\xff\x7f\x85R.",
        b"\x80\x02cbuiltins\nbytes\nJ\xff\xff\xff\x7f\x85R.",
        b"\x80\x02cbuiltins\nset\ncbuiltins\nrange\nJ\xff\xff\xff\x7f\x85R\x85R.",
        b"\x80\x02cbuiltins\nstr\n]" + b"2\x86" * 40 + b"\x85R.",
        b"\x80\x02Nr\x00\x00\x00\x20.",
    ],
)
def test_a_pickle_that_multiplies_is_refused(bomb: bytes) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, limits[1]))
    try:
        with pytest.raises(RefusedObjectError):
            load_plain(bomb)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_plain_objects_are_still_made() -> None:
    import pickle
    from collections import Counter, OrderedDict, defaultdict

    plain = [
        {1, 2},
        frozenset("ab"),
        bytearray(b"xy"),
        b"z",
        OrderedDict(a=1),
        Counter("aab"),
        defaultdict(int, a=2),
        3 + 4j,
        range(9),
    ]
    for protocol in (3, 4):
        assert load_plain(pickle.dumps(plain, protocol)) == plain


def test_a_file_of_another_bundle_is_not_run(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.json").write_text('{"schema": "phalanx.bundle/1"}')
    (other / "evil.py").touch()
    (tmp_path / "innocent.py").symlink_to(other / "evil.py")
    for words in (("other/evil.py",), ("innocent.py",), ("-m", "innocent")):
        with pytest.raises(ReplayError, match="lies in another bundle"):
            command_of(
                made(tmp_path / f"of-{words[-1].partition('.')[0].replace('/', '-')}{len(words)}", *words),
                tmp_path,
                None,
                None,
                None,
            )


def test_a_bundle_that_python_would_import_is_refused(tmp_path: Path) -> None:
    recording = made(tmp_path, "train.py")
    (tmp_path / "train.py").touch()
    assert command_of(recording, tmp_path, None, None, None).file == tmp_path / "train.py"
    (tmp_path / "bundle" / "__init__.py").touch()
    for script in (None, tmp_path / "train.py"):
        with pytest.raises(ReplayError, match="would import it as the module bundle"):
            command_of(recording, tmp_path, script, None, None)
