"""The watch inside a rank must not be felt: by the script, its children, its output, its exit, or the user's own sitecustomize."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from phalanx.run.watch.heartbeat import FOLDER, HeartbeatFile
from phalanx.run.watch.inside import phalanx_calls
from phalanx.run.watch.inside import phalanx_inside as record

PROBE = "import os, sys, threading; print(os.environ.get('PHALANX_INSIDE'), os.environ.get('PYTHONPATH'), threading.active_count(), [p for p in sys.path if 'watch/inside' in p])"


def run(
    tmp_path: Path, code: str, *, options: Sequence[str] = (), path: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "script.py").write_text(code)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(FOLDER), *path]),
        "PHALANX_INSIDE": f"1:2:{tmp_path / 'heartbeat'}",
    }
    command = [sys.executable, *options, str(tmp_path / "script.py")]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path
    )


def test_the_script_sees_nothing_of_it(tmp_path: Path) -> None:
    done = run(tmp_path, PROBE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "None None 1 []\n", "")
    beat = HeartbeatFile(tmp_path / "heartbeat").read()
    assert beat is not None
    assert beat.phase == record.STARTED


def test_the_users_path_and_sitecustomize_stay(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins; builtins.mine = __file__\n")
    done = run(tmp_path, PROBE + "\nimport sitecustomize; print(mine == sitecustomize.__file__)", path=[str(own)])
    assert done.stdout == f"None {own} 1 []\nTrue\n"
    assert done.stderr == ""


def test_an_error_in_the_users_sitecustomize_is_told_as_ever(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    done = run(tmp_path, "print('ran')", path=[str(tmp_path / "own")])
    assert done.stdout == "ran\n"
    assert "ValueError: mine" in done.stderr


@pytest.mark.parametrize("options", [["-S"], ["-I"], ["-E"], ["-X", "importtime"], ["-O"]])
def test_pythons_own_switches(tmp_path: Path, options: list[str]) -> None:
    done = run(tmp_path, "print('ran')", options=options)
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_a_record_that_cannot_be_made_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "heartbeat").mkdir()
    done = run(tmp_path, "print('ran')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def test_children_are_not_watched(tmp_path: Path) -> None:
    code = """
import multiprocessing, os, subprocess, sys, threading
def child(queue):
    queue.put((os.environ.get("PHALANX_INSIDE"), threading.active_count(), "phalanx_inside" in sys.modules))
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        print(method, *queue.get()[:2])
        process.join()
    print(subprocess.run([sys.executable, "-c", "import sys; print('phalanx_inside' in sys.modules)"], capture_output=True, text=True).stdout.strip())
"""
    done = run(tmp_path, code)
    assert done.stdout.splitlines() == ["fork None 1", "spawn None 1", "False"]
    assert done.stderr == ""
    beat = HeartbeatFile(tmp_path / "heartbeat").read()
    assert beat is not None


def test_a_second_process_of_the_rank_takes_over_only_when_the_first_is_gone(tmp_path: Path) -> None:
    code = f"""
import os, subprocess, sys
told = {{**os.environ, "PYTHONPATH": {str(FOLDER)!r}, "PHALANX_INSIDE": "1:2:{tmp_path / "heartbeat"}"}}
print(os.getpid())
subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], env=told)
"""
    first = run(tmp_path, code)
    pids = [int(line) for line in first.stdout.split()]
    beat = HeartbeatFile(tmp_path / "heartbeat").read()
    assert beat is not None
    assert beat.pid == pids[0]
    second = run(tmp_path, "import os; print(os.getpid())")
    beat = HeartbeatFile(tmp_path / "heartbeat").read()
    assert beat is not None
    assert beat.pid == int(second.stdout)


TORCH = """
import os, sys, threading, time
os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
import torch, torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
for _ in range(37):
    dist.all_reduce(torch.ones(2))
    time.sleep(0.01)  # Gloo's threads note the ends of calls; without a pause a late one may note an older call last
end = time.monotonic() + 30
while time.monotonic() < end:
    with open("heartbeat", "rb") as file:
        if int.from_bytes(file.read(64)[56:], "little") == 37:
            break
    time.sleep(0.1)
print(sorted(thread.name for thread in threading.enumerate()))
"""


@pytest.mark.job
@pytest.mark.parametrize(("ending", "code"), [("", 0), ("sys.exit(5)", 5), ("os._exit(6)", 6), ("raise ValueError", 1)])
def test_a_torch_script_ends_as_it_would(tmp_path: Path, ending: str, code: int) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install torch")
    done = run(tmp_path, TORCH + ending)
    assert done.returncode == code, done.stderr
    assert done.stdout == "['MainThread', 'phalanx-socket', 'phalanx-watch']\n"
    beat = HeartbeatFile(tmp_path / "heartbeat").read()
    assert beat is not None
    assert beat.phase == (record.CONNECTED if ending == "os._exit(6)" else record.LEAVING)
    assert (beat.enqueued, beat.completed, beat.outstanding) == (37, 37, False)
    assert beat.groups["0"].completed == 37


@pytest.mark.job
def test_an_older_python_can_read_it() -> None:
    """It is compiled as Python 3.8 would read it: no newer syntax."""
    import ast

    files = list(FOLDER.glob("*.py"))
    assert files
    for path in files:
        ast.parse(path.read_text(), feature_version=(3, 8))


def test_a_torn_or_foreign_record_reads_as_none(tmp_path: Path) -> None:
    assert HeartbeatFile(tmp_path / "missing").read() is None
    (tmp_path / "short").write_bytes(record.MAGIC)
    assert HeartbeatFile(tmp_path / "short").read() is None
    (tmp_path / "foreign").write_bytes(b"x" * record.PAGE)
    assert HeartbeatFile(tmp_path / "foreign").read() is None
    torn = bytearray(record.PAGE)
    torn[:8] = record.MAGIC
    record.HEAD.pack_into(torn, record.HEAD_AT, 3, 1, 1, 1, 1, 0, 0, 0)
    (tmp_path / "torn").write_bytes(torn)
    assert HeartbeatFile(tmp_path / "torn").read() is None


NCCL_LIKE = """
import json, os, sys, time, types
kind = {kind!r}
def status(count):
    return {{"last_enqueued_collective": str(count + 1), "last_started_collective": str(count), "last_completed_collective": str(count)}}
def dump_of(count, name):
    def dump(includeCollectives=True, onlyActive=False):
        found = {{"version": "2.10", "pg_status": {{"0": status(count)}}}}
        if includeCollectives:
            found["entries"] = [{{"profiling_name": name, "collective_seq_id": count}}]
        return json.dumps(found).encode()
    return dump
recorder = types.ModuleType("torch._C._distributed_c10d")
recorder._dump_nccl_trace_json = dump_of(40, "nccl:all_reduce")
recorder._dump_fr_trace_json = dump_of(40, "nccl:all_reduce") if kind == "one" else dump_of(7, "gloo:barrier")
version = types.ModuleType("torch.version")
version.__version__ = "2.6.0+cu124" if kind == "old" else "2.13.0+cu130"
sys.modules["torch.version"] = version
sys.modules[recorder.__name__] = recorder
import torch.distributed
print(os.environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE"))
end = time.monotonic() + 30
while time.monotonic() < end and not os.path.exists("collectives-1.json"):
    if os.path.exists("versions.json"):
        with open("heartbeat", "r+b") as file:
            file.seek({request}); file.write((1).to_bytes(8, "little"))
    time.sleep(0.1)
time.sleep(0.3)
"""


@pytest.mark.parametrize(
    ("kind", "groups", "set_to"),
    [("two", ["0", "cpu:0"], "None"), ("one", ["0"], "None"), ("old", ["0", "cpu:0"], "2000")],
)
def test_the_recorder_of_nccl_and_that_of_the_processor(
    tmp_path: Path, kind: str, groups: list[str], set_to: str
) -> None:
    """No GPU here: the two recorders of a CUDA build are played by functions that answer in their form."""
    package = tmp_path / "torch" / "distributed"
    package.mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").touch()
    (package / "__init__.py").write_text("def is_initialized():\n    return True\n")
    done = run(tmp_path, NCCL_LIKE.format(kind=kind, request=record.REQUEST_AT), path=[str(tmp_path)])
    assert (done.stdout.strip(), done.stderr) == (set_to, "")
    beat = HeartbeatFile(tmp_path / "heartbeat").read()
    assert beat is not None
    assert sorted(beat.groups) == groups
    assert beat.outstanding
    assert "nccl:all_reduce" in (tmp_path / "collectives-1.json").read_text()
    assert (tmp_path / "collectives-cpu-1.json").exists() == (kind != "one")


@pytest.mark.parametrize("known", [2, 3])  # the call that raised is in the journal, or the one before it is the last
def test_a_call_that_raised_was_never_done(tmp_path: Path, known: int) -> None:
    library, script = tmp_path / "horovod" / "library.py", tmp_path / "job.py"
    library.parent.mkdir()
    library.write_text("def run(fails):\n    if fails:\n        raise ValueError('lost')\n")
    script.write_text("def train(run):\n    for step in range(9):\n        run(step == 2)\n")
    names: dict[str, Any] = {}
    exec(compile(library.read_text(), str(library), "exec"), names)
    exec(compile(script.read_text(), str(script), "exec"), names)
    journal = phalanx_calls.Journal("tensorflow", by_name=False)
    calls = [journal.enter("step", "step", None) for _ in range(known)]
    list(map(journal.leave, calls))
    calls[-1].place, calls[-1].passes = (str(script), 3, "train"), (("step", known - 1),)
    with pytest.raises(ValueError, match="lost") as raised:
        names["train"](names["run"])
    journal.note_raised(raised.value.__traceback__)
    assert [call.passes for call in journal.calls if not call.done] == [(("step", 2),)]
    assert (journal.entered, journal.outstanding) == (3, 1)
