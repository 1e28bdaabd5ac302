"""Where a rank failed, under which condition, and in which collective: from its traceback and its last call."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import TracebackType

import pytest

from phalanx.run.watch.inside.phalanx_last_call import lacking_module, last_call
from phalanx.run.watch.last_words import call_of, call_waited_in, failure_of, module_of
from phalanx.run.watch.recorder import groups_of

SCRIPT = """\
def mean(value):
    return reduce(value)
if rank == 0:
    mean(1)
mean(2)
"""


def traceback(script: Path, line: int, prefix: str = "") -> list[bytes]:
    lines = [
        "Traceback (most recent call last):",
        f'  File "{script}", line {line}, in <module>',
        f'  File "{script}", line 2, in mean',
        '  File "/opt/venv/lib/python3.11/site-packages/tensorflow/execute.py", line 53, in quick_execute',
        "UnavailableError: Collective ops is aborted",
    ]
    return [(prefix + text).encode() for text in lines]


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_the_condition_under_which_the_rank_failed_is_told(tmp_path: Path, prefix: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    aside, common = failure_of(traceback(script, 4, prefix)), failure_of(traceback(script, 5, prefix))
    told = {"failed_at": "train.py:2", "error": "UnavailableError: Collective ops is aborted"}
    assert aside == {**told, "condition": "if rank == 0", "condition_at": "train.py:4"}
    assert common == told


def test_the_last_of_several_exceptions_counts(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    assert "condition" not in failure_of(traceback(script, 4) + traceback(script, 5))
    assert failure_of([b"step 1", b"step 2"]) == {}


class Tensor:
    shape, dtype = (3, 4), "float32"


def raised_in(folder: Path, body: str) -> TracebackType | None:
    """The traceback of a call into a module that lies where Horovod would."""
    file = folder / "horovod" / "torch" / "mpi_ops.py"
    file.parent.mkdir(parents=True)
    file.write_text(body)
    space: dict[str, object] = {}
    exec(compile(body, str(file), "exec"), space)
    call = space["call"]
    assert callable(call)
    try:
        call(Tensor())
    except RuntimeError:
        return sys.exc_info()[2]
    return None


def test_what_a_rank_had_asked_for_is_read_from_the_frames_of_its_exception(tmp_path: Path) -> None:
    body = """\
def synchronize(handle):
    raise RuntimeError("Mismatched BROADCAST root ranks")
def call(tensor, root_rank=2, name="weight"):
    synchronize(7)
"""
    found = last_call(raised_in(tmp_path, body))
    assert found == {"op": "call", "root": "2", "name": "weight", "shape": "[3, 4]", "dtype": "float32"}


def test_an_exception_from_elsewhere_tells_of_no_call() -> None:
    try:
        raise ValueError("bad sample")
    except ValueError:
        assert last_call(sys.exc_info()[2]) == {}
    assert last_call(None) == {}


def test_a_damaged_record_is_none(tmp_path: Path) -> None:
    (tmp_path / "last-call.json").write_text("{")
    assert call_of(tmp_path / "last-call.json") == call_of(tmp_path / "missing") == {}


def test_the_call_behind_the_one_that_keeps_a_log_is_named(tmp_path: Path) -> None:
    body = """\
def recv(tensor, src):
    raise RuntimeError("Timed out waiting 8000ms for recv operation to complete")
def wrapper(*args, **kwargs):
    return recv(*args, **kwargs)
def call(tensor):
    wrapper(tensor, src=2)
call.__code__ = call.__code__.replace(co_filename="train.py")
"""
    found = last_call(raised_in(tmp_path, body))
    assert (found["op"], found["root"]) == ("recv", "2")


def test_a_crash_in_another_thread_tells_where_the_script_was(tmp_path: Path) -> None:
    """Gloo aborts from its own thread, so that faulthandler calls no thread the current one."""
    script = tmp_path / "train.py"
    script.write_text("def save(model, rank):\n    if rank == 0:\n        full(model)\n\nsave(1, 0)\n")
    last = [
        b"Fatal Python error: Aborted",
        b"Thread 0x00007f4d70c146c0 (most recent call first):",
        b'  File "/usr/lib/python3.11/threading.py", line 331 in wait',
        b"",
        b"Thread 0x00007f4d8d7c9b80 (most recent call first):",
        b'  File "/venv/lib/python3.11/site-packages/torch/distributed/tensor/_api.py", line 774 in full_tensor',
        f'  File "{script}", line 3 in save'.encode(),
        f'  File "{script}", line 5 in <module>'.encode(),
        b"",
        b"Extension modules: numpy._core._multiarray_umath (total: 30)",
    ]
    assert failure_of(last) == {"failed_at": "train.py:3", "condition": "if rank == 0", "condition_at": "train.py:3"}


def test_the_shape_that_a_rank_waited_with_when_it_was_ended() -> None:
    entry = {
        "process_group": ["0", "default_pg"],
        "profiling_name": "gloo:all_reduce",
        "input_dtypes": ["Long"],
        "retired": False,
    }
    one = groups_of([{**entry, "collective_seq_id": 7, "input_sizes": [[10]]}])
    assert call_waited_in(one) == {"call": {"shape": "[10]"}}
    assert call_waited_in(groups_of([{**entry, "collective_seq_id": 7, "input_sizes": [[10], [3]]}])) == {}
    assert call_waited_in(groups_of([{**entry, "collective_seq_id": 7, "input_sizes": [[10]], "retired": True}])) == {}
    assert call_waited_in(None) == {}


@pytest.mark.skipif(sys.version_info < (3, 10), reason="exceptions do not tell the object")
def test_which_file_a_module_is_that_lacks_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_tools.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import own_tools  # type: ignore[import-not-found]

    with pytest.raises(AttributeError) as own:
        _ = own_tools.missing
    found = lacking_module(own.value)
    assert found == {"module": "own_tools", "file": str(tmp_path / "own_tools.py"), "name": "missing"}
    with pytest.raises(AttributeError) as installed:
        _ = pytest.missing  # type: ignore[attr-defined]
    assert lacking_module(installed.value) == {}
    assert module_of(tmp_path / "none.json", 1) == []
    (tmp_path / "last-module.json").write_text(json.dumps(found))
    (told,) = module_of(tmp_path / "last-module.json", 1)
    assert (told.ranks, told.facts[0].fields["file"]) == ((1,), found["file"])
