"""Random jobs over random groups: healthy ones are left alone, one broken rank is named exactly, whatever the order and clocks."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phalanx.diagnosis.collective_analysis import Break, observe
from tests.diagnosis.collective_analysis.jobs import Call, Job, observed, traces_of

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
OPS = ("all_reduce", "_all_gather_base", "_reduce_scatter_base", "all_to_all", "barrier")


def random_job(seed: int, kind: str | None) -> tuple[Job, random.Random]:
    choose = random.Random(seed)
    world = choose.randrange(4, 9)
    sizes = [choose.randrange(2, world + 1) for _ in range(choose.randrange(0, 5))]
    groups = [tuple(range(world)), *(tuple(sorted(choose.sample(range(world), size))) for size in sizes)]
    schedule = [
        Call(choose.randrange(len(groups)), choose.choice(OPS), (choose.randrange(1, 9),))
        for _ in range(choose.randrange(4, 30))
    ]
    schedule += [Call(0), Call(0, "barrier"), Call(0)]
    fault = None
    if kind is not None:
        least = 3 if kind in ("op", "size", "dtype") else 2
        fit = [
            n
            for n, call in enumerate(schedule[:-2])
            if len(groups[call.group]) >= least and (kind == "op" or call.op not in ("barrier", "all_to_all"))
        ]
        at = choose.choice(fit)
        fault = (kind, choose.choice(groups[schedule[at].group]), at)
    return Job(world, groups, schedule, fault, choose.randrange(0, 4)).run(), choose


@SETTINGS
@given(st.integers(0, 2**32))
def test_a_healthy_job_is_left_alone(seed: int) -> None:
    job, choose = random_job(seed, None)
    assert observed(job.dumps()) == []
    assert observed(job.dumps({rank: choose.randrange(1, 6) for rank in range(job.world)})) == []


EXPECTED = {
    "host": Break.HOST,
    "dead": Break.NO_TRACE,
    "device": Break.DEVICE,
    "op": Break.MISMATCH,
    "size": Break.MISMATCH,
    "dtype": Break.MISMATCH,
}


@SETTINGS
@given(st.integers(0, 2**32), st.sampled_from(sorted(EXPECTED)))
def test_one_broken_rank_is_named_exactly(seed: int, kind: str) -> None:
    job, _ = random_job(seed, kind)
    assert job.fault is not None
    found = observed(job.dumps())
    assert [(one.kind, one.ranks) for one in found] == [(EXPECTED[kind], (job.fault[1],))]


@SETTINGS
@given(st.integers(0, 2**32), st.sampled_from(["host", "dead", "device"]))
def test_dumps_of_the_active_calls_suffice_for_stalls(seed: int, kind: str) -> None:
    job, _ = random_job(seed, kind)
    assert job.fault is not None
    assert [(one.kind, one.ranks) for one in observed(job.dumps(only_active=True))] == [
        (EXPECTED[kind], (job.fault[1],))
    ]


@SETTINGS
@given(st.integers(0, 2**32), st.sampled_from(sorted(EXPECTED)))
def test_neither_order_nor_clocks_matter(seed: int, kind: str) -> None:
    job, choose = random_job(seed, kind)
    plain = observed(job.dumps())
    shifted = job.dumps(shift={rank: choose.randrange(0, 10**17) for rank in range(job.world)})
    names = list(shifted)
    choose.shuffle(names)
    assert observed({name: shifted[name] for name in names}) == plain


@SETTINGS
@given(st.integers(0, 2**32), st.sampled_from(sorted(EXPECTED)))
def test_rings_that_dropped_the_start_are_aligned_by_number(seed: int, kind: str) -> None:
    """Each ring keeps another length; what all still hold is compared, and stalls are still told."""
    job, choose = random_job(seed, kind)
    assert job.fault is not None
    kept = {rank: choose.randrange(8, 14) for rank in range(job.world)}
    accused = {rank for one in observed(job.dumps(kept)) for rank in one.ranks}
    assert accused <= {job.fault[1]}


@SETTINGS
@given(st.integers(0, 2**32), st.data())
def test_missing_and_truncated_dumps_never_end_the_analysis(seed: int, data: st.DataObject) -> None:
    job, choose = random_job(seed, choose_kind := data.draw(st.sampled_from([None, "host", "device", "op"])))
    files = job.dumps()
    for name in choose.sample(sorted(files), choose.randrange(0, len(files))):
        action = choose.randrange(3)
        if action == 0:
            del files[name]
        else:
            files[name] = files[name][: choose.randrange(0, len(files[name]))]
    for found in traces_of(files):
        for one in observe(found):
            assert "unknown" not in one.text, choose_kind
