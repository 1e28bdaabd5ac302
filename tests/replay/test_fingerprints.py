"""Fingerprints see every changed bit, and tell where it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.replay.inside.phalanx_record.fingerprints import different_ranges, fingerprint, part_size

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
    assert f"{fingerprint(data)[0]:016x}" == "dcbf7f36f189919e"
    assert f"{fingerprint(data[:5])[0]:016x}" == "60be06f87c746c69"


def test_equal_values_do_not_cancel() -> None:
    ones, twos = numpy.full(65_536, 1, numpy.uint8), numpy.full(65_536, 2, numpy.uint8)
    assert fingerprint(ones)[0] != fingerprint(twos)[0]
