"""Fingerprints see every changed bit, and tell where it is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.replay.inside.phalanx_record import fingerprints
from phalanx.replay.inside.phalanx_record.fingerprints import (
    Told,
    append_line,
    copy_memory,
    different_ranges,
    fingerprint,
    look_of,
    part_size,
)
from phalanx.replay.inside.phalanx_record.memory import Bytes
from phalanx.replay.inside.phalanx_record.records import put
from phalanx.replay.native import Native
from phalanx.replay.record import INSIDE

numpy = pytest.importorskip("numpy", reason="pip install numpy")


def parts(pieces: list[int]) -> str:
    return "".join(f"{piece:016x}" for piece in pieces)


@settings(max_examples=60, deadline=None)
@given(size=st.integers(1, 300_000), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_one_flipped_bit_is_seen_and_located(size: int, place: float, bit: int) -> None:
    data = numpy.random.default_rng(size).integers(0, 256, size, dtype=numpy.uint8)
    changed = data.copy()
    at = int(place * size)
    changed[at] ^= 1 << bit
    before, after = fingerprint(data), fingerprint(changed)
    assert before[0] != after[0]
    ranges = different_ranges(size, parts(before[1]), parts(after[1]))
    assert len(ranges) == 1
    low, high = ranges[0]
    assert low <= at < high
    assert high - low <= max(part_size(size), 8) or not before[1]


def test_order_and_length_count() -> None:
    data = numpy.arange(40_000, dtype=numpy.uint8)
    assert fingerprint(data)[0] != fingerprint(data[::-1].copy())[0]
    zeros = numpy.zeros(16, numpy.uint8)
    assert fingerprint(zeros)[0] != fingerprint(zeros[:8])[0]


def test_the_same_in_every_process_and_release() -> None:
    """A recording must be comparable later: these numbers may never change."""
    data = numpy.arange(100_003, dtype=numpy.uint32).view(numpy.uint8)
    assert f"{fingerprint(data)[0]:016x}" == "7efe035c0b244925"
    assert f"{fingerprint(data[:5])[0]:016x}" == "b650406c667dc5c7"


def test_signs_do_not_cancel() -> None:
    """The highest bits of words are where sums of products are weak: two changed signs in one row, and whole columns of them."""
    data = numpy.zeros(65_536, numpy.float64)
    two, columns = data.copy(), data.copy()
    two[[3, 9]] = -0.0
    columns.reshape(-1, 256)[:, [3, 9]] = -0.0
    marks = {fingerprint(one.view(numpy.uint8))[0] for one in (data, two, columns)}
    assert len(marks) == 3


def test_the_compiled_library_gives_the_same_numbers_and_copies() -> None:
    native = Native()
    if not native.path:
        pytest.skip("needs a C compiler")
    sizes = (0, 1, 7, 8, 63, 4095, 4096, 50_001, 262_143, 262_144, 1_000_003)
    samples = [
        numpy.random.default_rng(size).integers(0, 256, size + 8, dtype=numpy.uint8)[3 : size + 3] for size in sizes
    ]
    expected = [fingerprint(one) for one in samples]
    try:
        assert fingerprints.use(native.path)
        assert [fingerprint(one) for one in samples] == expected
        for one, (whole, _) in zip(samples, expected, strict=True):
            copy = numpy.zeros(len(one) + 1, numpy.uint8)
            assert fingerprints.of_memory(one.ctypes.data, len(one), False, copy.ctypes.data) == (whole, "")
            assert (copy[:-1] == one).all()
            assert copy[-1] == 0
    finally:
        fingerprints._native.clear()
        native.close()


def test_a_line_is_the_same_by_the_library_and_by_numpy(tmp_path: Path) -> None:
    """Of nothing, of one tensor, of small ones between large ones, and of so many that the line does not fit the stack."""
    native = Native()
    if not native.path:
        pytest.skip("needs a C compiler")
    many = [numpy.random.default_rng(size).integers(0, 256, size * 700, dtype=numpy.uint8) for size in range(40)]
    cases = [[], many[20:21], many[3:9], many]

    def written(name: str) -> tuple[list[bytes], list[int], list[bytes]]:
        sizes, wholes, copies = [], [], []
        log = os.open(tmp_path / name, os.O_WRONLY | os.O_CREAT)
        for number, case in enumerate(cases):
            held = [Bytes(one) for one in case]
            told, copy = Told(), numpy.zeros(sum(map(len, case)) + 1, numpy.uint8)
            prefix = f'"n":{number},"in":['
            sizes.append(append_line(log, prefix, held, True, copy.ctypes.data, told))
            sizes.append(append_line(log, prefix, held, False))
            wholes.append(told[0])
            copies.append(copy.tobytes())
        os.close(log)
        lines = (tmp_path / name).read_bytes().splitlines(keepends=True)
        assert sizes == [len(line) for line in lines]
        return lines, wholes, copies

    expected = written("numpy")
    assert [json.loads(line)["n"] for line in expected[0]] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert expected[2] == [b"".join(one.tobytes() for one in case) + b"\0" for case in cases]
    try:
        assert fingerprints.use(native.path)
        assert written("library") == expected
        with pytest.raises(OSError, match="Bad file descriptor"):
            append_line(-1, "", [], True)
    finally:
        fingerprints._native.clear()
        native.close()


@pytest.mark.parametrize("by", ["numpy", "library"])
def test_numbers_that_are_not_finite_are_seen_wherever_they_stand(by: str, tmp_path: Path) -> None:
    """In rows and behind them; in types of every width. Large numbers, and those of types that are not looked at, are finite."""
    native = Native()
    if by == "library" and not native.path:
        pytest.skip("needs a C compiler")
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)

    def is_odd(values: Any, name: str) -> bool:
        told = Told()
        append_line(log, "[", [Bytes(values)], False, 0, told, look_of(name))
        return bool(told[1])

    try:
        assert by == "numpy" or fingerprints.use(native.path)
        for name, kind in (("float32", "f4"), ("float64", "f8"), ("float16", "f2")):
            for count in (1, 7, 40_003):
                values = numpy.full(count, numpy.finfo(kind).max, kind)
                values[::2] *= -1
                assert not is_odd(values, f"torch.{name}")
                for place in {0, count // 2, count - 1}:
                    for odd in (numpy.nan, numpy.inf, -numpy.inf):
                        changed = values.copy()
                        changed[place] = odd
                        assert is_odd(changed, f"torch.{name}"), (name, count, place, odd)
                        assert not is_odd(changed, "torch.int32")
        brain = numpy.full(1000, 0x7F7F, numpy.uint16)
        assert not is_odd(brain, "torch.bfloat16")
        brain[999] = 0x7F80
        assert is_odd(brain, "torch.bfloat16")
    finally:
        os.close(log)
        fingerprints._native.clear()
        native.close()


@pytest.mark.parametrize("by", ["numpy", "library"])
def test_copies_are_whole_from_and_to_any_place(by: str) -> None:
    """Past the cache or through it: at the sizes between, and where nothing is aligned."""
    native = Native()
    if by == "library" and not native.path:
        pytest.skip("needs a C compiler")
    source = numpy.random.default_rng(1).integers(0, 256, 600_000, dtype=numpy.uint8)
    try:
        assert by == "numpy" or fingerprints.use(native.path)
        for size in (0, 1, 31, 4097, 262_143, 262_144, 262_145, 500_001):
            for shift, begin in ((0, 0), (1, 3), (33, 64)):
                target = numpy.zeros(600_000, numpy.uint8)
                copy_memory(target.ctypes.data + shift, source.ctypes.data + begin, size)
                assert (target[shift : shift + size] == source[begin : begin + size]).all()
                assert not target[:shift].any()
                assert not target[shift + size :].any()
    finally:
        fingerprints._native.clear()
        native.close()


def test_a_library_that_does_otherwise_is_not_used(tmp_path: Path) -> None:
    native = Native()
    if not native.path:
        pytest.skip("needs a C compiler")
    source = (INSIDE / "phalanx_record" / "words.c").read_text().replace("0x9E3779B97F4A7C15u", "0x9E3779B97F4A7C17u")
    (tmp_path / "words.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "words.so", "words.c"], cwd=tmp_path, check=True)
    assert not fingerprints.use(str(tmp_path / "words.so"))
    assert not fingerprints.use(str(tmp_path / "nothing.so"))
    assert not fingerprints._native
    native.close()


def test_equal_values_do_not_cancel() -> None:
    ones, twos = numpy.full(65_536, 1, numpy.uint8), numpy.full(65_536, 2, numpy.uint8)
    assert fingerprint(ones)[0] != fingerprint(twos)[0]


def test_arrays_of_any_shape_are_filled_in_place() -> None:
    """TensorFlow's results: single numbers, and arrays that do not lie in a row."""
    one, turned = numpy.zeros((), numpy.float32), numpy.zeros((3, 2), numpy.float32).T
    data = numpy.arange(1, 8, dtype=numpy.float32)
    put([one, turned], [memoryview(data.tobytes()[:5]), memoryview(data.tobytes()[5:])])
    assert one == 1
    assert turned.tolist() == [[2, 3, 4], [5, 6, 7]]
