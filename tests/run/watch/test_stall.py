"""The stall detector, played: signs and times are made up here, so that no clock and no load changes a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.run.watch.stall import Notice, Signs, StallDetector, Verdict

TICK = 0.5


def play(
    detector: StallDetector, signs: Callable[[float], dict[int, Signs]], start: float, end: float
) -> list[tuple[float, Notice]]:
    """Everything the detector said between two moments, where early looks at the stacks find nothing."""
    said = []
    for now, notice in play_with_early_looks(detector, signs, start, end):
        if notice.verdict is Verdict.APART or (notice.verdict is Verdict.BUSY and notice.is_early):
            detector.forgive(notice.verdict)
        else:
            said.append((now, notice))
    return said


def play_with_early_looks(
    detector: StallDetector, signs: Callable[[float], dict[int, Signs]], start: float, end: float
) -> Iterator[tuple[float, Notice]]:
    for number in range(int((end - start) / TICK)):
        now = start + number * TICK
        for notice in detector.update(now, signs(now)):
            yield now, notice


def steps(now: float, ranks: int = 3, step_s: float = 0.5) -> dict[int, Signs]:
    """A healthy job: every rank computes and goes on."""
    return {
        rank: Signs(progress=int(now / step_s), cpu=0.8 * now, demand=0.8 * now, connected=True)
        for rank in range(ranks)
    }


def stopped_at(
    moment: float, busy: dict[int, float] | None = None, io: dict[int, float] | None = None
) -> Callable[[float], dict[int, Signs]]:
    """The same job, position still from a moment on; `busy` ranks compute on, `io` ranks write on."""

    def at(now: float) -> dict[int, Signs]:
        found = {}
        for rank, sign in steps(min(now, moment)).items():
            more = max(now - moment, 0.0)
            found[rank] = Signs(
                sign.progress,
                cpu=sign.cpu + more * (busy or {}).get(rank, 0.0),
                demand=sign.demand + more * (busy or {}).get(rank, 0.0),
                io=int(more * (io or {}).get(rank, 0.0)),
                connected=True,
            )
        return found

    return at


def test_a_healthy_job_is_never_suspected() -> None:
    assert play(StallDetector(), steps, 0, 600) == []


def test_a_job_of_subsecond_steps_is_told_after_the_floor() -> None:
    ((when, notice),) = play(StallDetector(), stopped_at(30), 0, 120)
    assert notice.verdict is Verdict.STALL
    assert 38 <= when <= 39


def test_a_slow_rhythm_is_learned() -> None:
    def slow(now: float) -> dict[int, Signs]:
        return {rank: Signs(progress=int(min(now, 300) / 20), connected=True) for rank in range(2)}

    ((when, notice),) = play(StallDetector(), slow, 0, 400)
    assert notice.verdict is Verdict.STALL
    assert when >= 300 + 2 * 19


def test_a_rank_that_computes_is_waited_for() -> None:
    said = play(StallDetector(ceiling=200), stopped_at(30, busy={0: 0.9}), 0, 300)
    assert [notice.verdict for _, notice in said] == [Verdict.BUSY, Verdict.CEILING]
    assert said[0][1].working == (0,)
    assert said[0][0] >= 30 + 16
    assert 229 <= said[1][0] <= 231


def test_a_checkpoint_that_is_written_is_no_stall() -> None:
    said = play(StallDetector(), stopped_at(30, io={1: 5e6}), 0, 100)
    assert [notice.verdict for _, notice in said] == [Verdict.BUSY]


@pytest.mark.parametrize(
    ("traffic", "faults", "expected"),
    [
        (100e3, 0, Verdict.BUSY),  # a slow download
        (4e3, 0, Verdict.STALL),  # heartbeats of a coordinator
        (None, 200, Verdict.BUSY),  # memory is short
        (None, 5, Verdict.STALL),
    ],
)
def test_a_rank_that_downloads_or_swaps_is_at_work(traffic: float | None, faults: float, expected: Verdict) -> None:
    def at(now: float) -> dict[int, Signs]:
        more = max(now - 30, 0.0)
        # the network is looked at only when nothing else moves, and its count begins anywhere
        seen = int(7e9 + more * traffic) if traffic is not None and more > 4 else None
        found = stopped_at(30)(now)
        return {**found, 1: replace(found[1], traffic=seen, faults=int(more * faults))}

    ((_, notice),) = play(StallDetector(), at, 0, 80)
    assert notice.verdict is expected
    assert notice.moving == ((1,) if expected is Verdict.BUSY else ())


def test_a_waiter_that_spins_is_not_at_work() -> None:
    def spinning(now: float) -> dict[int, Signs]:
        found = stopped_at(30, busy={0: 1.0, 1: 1.0})(now)
        return {rank: replace(sign, spinning=now > 30) for rank, sign in found.items()}

    ((_, notice),) = play(StallDetector(), spinning, 0, 100)
    assert notice.verdict is Verdict.STALL


def test_a_late_starter_is_waited_for() -> None:
    def late(now: float) -> dict[int, Signs]:
        return {rank: Signs(progress=max(int((now - 20) * 2), 0), connected=now > 20) for rank in range(3)}

    assert play(StallDetector(), late, 0, 100) == []


def test_peers_that_never_come_are_a_stall_in_the_end() -> None:
    ((when, notice),) = play(StallDetector(), lambda now: {0: Signs(), 1: Signs()}, 0, 100)
    assert notice.verdict is Verdict.STALL
    assert 30 <= when <= 31


def test_what_recovered_is_said_and_learned() -> None:
    def pausing(now: float) -> dict[int, Signs]:
        gone = 12 if now > 42 else max(now - 30, 0)
        if now > 100:
            gone += min(now - 100, 12)
        return {rank: Signs(progress=int((now - gone) * 2), connected=True) for rank in range(2)}

    said = [notice.verdict for _, notice in play(StallDetector(), pausing, 0, 160)]
    assert said == [Verdict.STALL, Verdict.RECOVERED]  # the second pause is as long, and known


def test_a_stopped_rank_is_told_within_two_seconds_and_only_once() -> None:
    def stopped(now: float) -> dict[int, Signs]:
        found = stopped_at(30)(now)
        return {rank: replace(sign, stopped=rank == 1 and now > 30) for rank, sign in found.items()}

    ((when, notice),) = play(StallDetector(), stopped, 0, 100)
    assert (notice.verdict, notice.stopped) == (Verdict.STOPPED, (1,))
    assert when <= 32


def test_a_rank_that_ends_is_news() -> None:
    def ending(now: float) -> dict[int, Signs]:
        found = stopped_at(30)(now)
        if now > 37:
            del found[2]
        return found

    said = play(StallDetector(), ending, 0, 42)
    assert said == []


def test_floor_and_ceiling_are_the_users() -> None:
    ((when, _),) = play(StallDetector(floor=3), stopped_at(30), 0, 60)
    assert when <= 34
    ((when, notice),) = play(StallDetector(floor=3, ceiling=20), stopped_at(30, busy={1: 1.0}), 0, 60)[-1:]
    assert notice.verdict is Verdict.CEILING
    assert 50 <= when <= 51


@pytest.mark.parametrize("step_s", [0.1, 1.0, 5.0])
@settings(max_examples=25, deadline=None)
@given(jitter=st.lists(st.floats(0.5, 1.9), min_size=30, max_size=30))
def test_a_rhythm_with_jitter_raises_no_alarm(step_s: float, jitter: list[float]) -> None:
    ends = []
    now = 0.0
    for factor in jitter * 4:
        now += step_s * factor
        ends.append(now)

    def jittery(moment: float) -> dict[int, Signs]:
        return {0: Signs(progress=sum(end <= moment for end in ends), connected=True)}

    assert play(StallDetector(), jittery, 0, now) == []


def test_a_quick_job_that_stops_after_a_few_looks_has_a_rhythm_already() -> None:
    def quick(now: float) -> dict[int, Signs]:
        calls = int(min(now, 1.5) * 30)
        return {rank: Signs(progress=calls, calls=calls, connected=True) for rank in range(2)}

    ((when, _),) = play(StallDetector(), quick, 0, 60)
    assert when <= 1.5 + 9


def test_talk_before_the_first_step_is_no_rhythm() -> None:
    def talking(now: float) -> dict[int, Signs]:
        return {rank: Signs(progress=int(min(now, 1.5) * 30), connected=True) for rank in range(2)}

    ((when, _),) = play(StallDetector(), talking, 0, 60)
    assert when >= 1.5 + 23


def test_a_pause_after_long_work_is_measured_from_the_end_of_the_work() -> None:
    def importing_then_waiting(now: float) -> dict[int, Signs]:
        worked = min(now, 60.0)  # a minute of imports on a loaded machine, then a rank that sleeps before it connects
        return {rank: Signs(progress=0, cpu=worked, demand=worked, connected=False) for rank in range(3)}

    detector = StallDetector()
    assert [
        notice for _, notice in play(detector, importing_then_waiting, 0, 85) if notice.verdict is Verdict.STALL
    ] == []
    assert [notice.verdict for _, notice in play(detector, importing_then_waiting, 85, 120)] == [Verdict.STALL]


def test_ranks_that_wait_at_work_are_looked_at_after_the_floor_and_told_once() -> None:
    """Horovod's waiting takes processor time; whether they only wait is for the stacks to say."""
    detector = StallDetector(floor=8.0)
    said = list(play_with_early_looks(detector, stopped_at(20.0, busy={0: 0.9, 1: 0.9, 2: 0.9}), 0.0, 80.0))
    assert [notice.verdict for _, notice in said] == [Verdict.BUSY]
    assert said[0][1].is_early
    assert 28.0 <= said[0][0] <= 29.0
    assert said[0][1].working == (0, 1, 2)


def test_who_moves_data_is_not_looked_at_early() -> None:
    detector = StallDetector(floor=8.0)
    signs = stopped_at(20.0, busy={1: 0.9}, io={1: 5e6})
    assert list(play_with_early_looks(detector, signs, 0.0, 34.0)) == []


def test_who_floods_its_output_is_at_work() -> None:
    """It waits until its lines are taken: that is no stall."""

    def floods(now: float) -> dict[int, Signs]:
        return {rank: Signs(progress=int(min(now, 20.0) * 2), lines=int(now * 500), connected=True) for rank in (0, 1)}

    assert Verdict.STALL not in [notice.verdict for _, notice in play(StallDetector(floor=8.0), floods, 0.0, 60.0)]


@pytest.mark.parametrize("share", [0.25, 0.9])
def test_what_a_rank_at_work_has_had_of_a_processor_is_told(share: float) -> None:
    """On a loaded machine minutes go by, and little is done in them."""
    ((_, notice),) = play(StallDetector(), stopped_at(60, busy={1: share}), 0, 90)
    assert notice.verdict is Verdict.BUSY
    assert notice.spent == pytest.approx(share * notice.quiet, abs=1.0)


@pytest.mark.parametrize(("told_every", "patience"), [(5, 8.0), (20, 8.0), (40, 24.0)])
def test_a_job_that_tells_of_some_of_its_steps_has_a_rhythm(told_every: int, patience: float) -> None:
    """A step number tells of those before it; once only is no rhythm."""

    def told(now: float) -> dict[int, Signs]:
        steps = int(min(now, 4.0) * 10) // told_every * told_every
        return {rank: Signs(progress=steps // told_every, steps=steps, connected=None) for rank in (0, 1)}

    detector = StallDetector(floor=8.0)
    play(detector, told, 0.0, 6.0)
    assert detector.patience == patience


def test_a_slow_import_does_not_put_off_the_early_look() -> None:
    """Ranks print something, import for 18 s, print again, and then stand: 8 s later they are looked at, not 36 s later."""

    def signs(now: float) -> dict[int, Signs]:
        return {rank: Signs(progress=(now >= 1) + (now >= 2) + (now >= 20), connected=None) for rank in (0, 1)}

    looks = [
        now
        for now, notice in play_with_early_looks(StallDetector(floor=8.0), signs, 0.0, 40.0)
        if notice.verdict is Verdict.APART
    ]
    assert looks[-1] == pytest.approx(28.0, abs=1.0)
