"""The memory of a ring outlives its rank: whatever a kill leaves is whole, and of the newest stretches."""

from __future__ import annotations

import ctypes
import os
import signal
import tempfile
from collections.abc import Callable

import pytest

from phalanx.replay.inside.phalanx_record import segments
from phalanx.replay.inside.phalanx_record.segments import (
    RESULT,
    SEGMENTS,
    SNAPSHOT,
    Held,
    Segment,
    held_in,
    is_room,
    make_room,
)


def write_steps(room: int, steps: int, die: Callable[[], None]) -> None:
    """As a ring does: every third step begins a stretch with a snapshot; sizes differ, and outgrow the memory at first."""
    segments = [Segment(room, index) for index in range(SEGMENTS)]
    stretch = 1
    segments[stretch % SEGMENTS].begin(stretch)

    def put(kind: int, number: int, size: int) -> None:
        space = segments[stretch % SEGMENTS].reserve(kind, {"n": number}, size)
        ctypes.memmove(space.address, bytes([number % 251]) * size, size // 2)
        die()
        ctypes.memmove(space.address, bytes([number % 251]) * size, size)
        space.commit()
        die()

    for step in range(1, steps + 1):
        put(RESULT, step, 500_000 * (step % 7) + step)
        if step % 3 == 0:
            stretch += 1
            segments[stretch % SEGMENTS].begin(stretch)
            die()
            put(SNAPSHOT, step, 5_000_000 + step)


def expected(at: int, steps: int = 20) -> list[list[int]]:
    """Numbers of the records that must be there if the kill comes at the given moment."""
    moment, stretches = 0, [[]]  # type: ignore[var-annotated]
    for step in range(1, steps + 1):
        for is_snapshot in (False, True) if step % 3 == 0 else (False,):
            if is_snapshot:
                stretches = [*stretches[-1:], []]  # begun over the one before
                moment += 1
                if moment == at:
                    return [one for one in stretches if one]
            moment += 1
            if moment == at:
                return [one for one in stretches if one]
            stretches[-1].append(step)
            moment += 1
            if moment == at:
                return [one for one in stretches if one]
    return stretches


def found_after(at: int, steps: int = 20) -> list[list[Held]]:
    room = make_room()
    child = os.fork()
    if child == 0:
        passed = 0

        def die() -> None:
            nonlocal passed
            passed += 1
            if passed == at:
                os.kill(os.getpid(), signal.SIGKILL)

        write_steps(room, steps, die)
        os._exit(0)
    os.waitpid(child, 0)
    try:
        found = held_in(room)
        for stretch in found:
            for held in stretch:
                data = held.data(room)
                assert set(data) <= {held.facts["n"] % 251}
                assert len(data) == held.size
        return found
    finally:
        os.close(room)


@pytest.mark.parametrize("at", [*range(1, 40), -1])
def test_a_kill_at_any_moment_leaves_the_newest_steps_whole(at: int) -> None:
    found = found_after(at)
    assert [[held.facts["n"] for held in stretch] for stretch in found] == expected(at)


def test_two_stretches_are_held_each_with_its_state() -> None:
    found = found_after(-1)
    assert [held.facts["n"] for held in found[0]] == [15, 16, 17, 18]
    assert [held.facts["n"] for held in found[1]] == [18, 19, 20]
    assert [stretch[0].kind for stretch in found] == [SNAPSHOT, SNAPSHOT]


def test_nothing_is_found_in_memory_that_nobody_wrote() -> None:
    room = make_room()
    assert held_in(room) == []
    assert is_room(room)
    os.close(room)
    assert not is_room(room)
    with tempfile.TemporaryFile() as other:
        assert not is_room(other.fileno())


def test_a_ring_leaves_the_job_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that never steps keeps results of one stretch for ever: it must not be killed for it."""
    monkeypatch.setattr(segments, "_free_memory", lambda: 100 << 20)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    room = make_room()
    segment = Segment(room, 0)
    segment.begin(1)
    kept: list[int] = []

    def fill() -> None:
        while len(kept) < 100:
            space = segment.reserve(RESULT, {"n": len(kept)}, 1 << 20)
            ctypes.memset(space.address, 1, 1 << 20)
            space.commit()
            kept.append(1)

    with pytest.raises(OSError, match="100 MiB of memory are free"):
        fill()
    assert 10 < len(kept) < 50
    held = os.fstat(room).st_blocks
    segment.release()
    assert os.fstat(room).st_blocks < held / 10
    os.close(room)


def test_free_memory_is_known_here() -> None:
    free = segments._free_memory()
    assert free is not None
    assert free > 0
