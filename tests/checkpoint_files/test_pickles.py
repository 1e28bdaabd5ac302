"""The reader of pickles agrees with Python's on plain data, and runs, imports and multiplies nothing."""

from __future__ import annotations

import os
import pickle
import time
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from phalanx.checkpoint_files.inventory import harmful
from phalanx.checkpoint_files.pickled import Global, Node, PickleError
from phalanx.checkpoint_files.pickles import read_pickle

_KEYS = some.text(max_size=5) | some.integers() | some.tuples(some.integers(), some.text(max_size=3))
_PLAIN = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text() | some.binary(),
    lambda one: some.lists(one, max_size=4) | some.tuples(one, one) | some.dictionaries(_KEYS, one, max_size=4),
    max_leaves=20,
)


@given(_PLAIN, some.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_plain_data_is_read_as_python_reads_it(value: Any, protocol: int) -> None:
    if protocol < 3 and _has_bytes(value):
        return  # older protocols have no bytes of their own: they call a codec
    if protocol == 0 and _has_text(value):
        return  # escapes in lines of text are left as they are
    assert read_pickle(pickle.dumps(value, protocol)).value == value


def _has_bytes(value: Any) -> bool:
    return b"C" in pickle.dumps(value, 3) or b"B" in pickle.dumps(value, 3)


def _has_text(value: Any) -> bool:
    return b"X" in pickle.dumps(value, 2)


class _Runs:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def test_a_call_is_a_node_and_is_not_made(tmp_path: Path) -> None:
    read = read_pickle(pickle.dumps({"x": _Runs(tmp_path / "ran")}))
    assert isinstance(read.value["x"], Node)
    assert harmful(read.globals) == ["posix.system"]
    assert not (tmp_path / "ran").exists()


def test_objects_keep_their_state_and_ordered_dictionaries_are_dictionaries() -> None:
    read = read_pickle(pickle.dumps([OrderedDict(a=1), Path("x"), Global("a", "b")]))
    assert read.value[0] == {"a": 1}
    assert read.value[1].name.startswith("pathlib.")
    assert read.value[2].args == (Global("phalanx.checkpoint_files.pickles", "Global"),) or read.value[2].state


@pytest.mark.parametrize("cut", [1, 10, 40, 90])
def test_a_pickle_that_is_cut_short_is_said_to_be(cut: int) -> None:
    data = pickle.dumps({"a" * 30: list(range(50)), "b": "c" * 40})
    with pytest.raises(PickleError, match=r"cut short|damaged"):
        read_pickle(data[:-cut])


def test_what_multiplies_takes_no_time() -> None:
    laughs = b"(" + b")"  # an empty tuple, then pairs of what came before, sixty times: 2**60 leaves
    laughs = b"\x80\x02)" + b"".join(b"2\x86" for _ in range(60))
    as_key = b"\x80\x02}" + laughs[2:] + b"K\x01s."
    copies = b"\x80\x02](](K\x01K\x02e" + b"2" * 2000 + b"e" + b"0ccollections\nOrderedDict\n" + b"."
    began = time.monotonic()
    for data in (laughs + b".", as_key, copies):
        with suppress(PickleError):
            read_pickle(data)
    assert time.monotonic() - began < 2


def test_a_high_number_of_a_remembered_object_takes_no_memory() -> None:
    read = read_pickle(b"\x80\x02K\x01r\xff\xff\xff\xff.")
    assert read.value == 1


def test_a_length_beyond_the_end_is_refused() -> None:
    with pytest.raises(PickleError):
        read_pickle(b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.")
