"""Jobs with a fault that nobody tuned for, made by `simulated_job.py`, each with the truth: whom a verdict may accuse, and of what."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from simulated_job import Call, Layout, Simulation, changed, layout, places, training

HOST, DEVICE, NETWORK, DEAD = "host-stalled", "device-stalled", "network-or-device-stalled", "rank-left-no-trace"
ORDER, PARTNER, CIRCLE = "other-order-of-calls", "point-to-point-without-partner", "circular-wait"
OPERATION, SIZE = "collective-operation-differs", "collective-size-differs"


@dataclass(frozen=True)
class Truth:
    """Who broke what. `either`: ranks between which nothing in the traces can tell, one or more of which may be accused."""

    causes: frozenset[str]
    ranks: frozenset[int] = frozenset()
    either: frozenset[int] = frozenset()


Made = tuple[dict[str, bytes], Truth]


def truth(cause: str | tuple[str, ...], *ranks: int, either: tuple[int, ...] = ()) -> Truth:
    causes = (cause,) if isinstance(cause, str) else cause
    return Truth(frozenset(causes), frozenset(ranks), frozenset(either))


def _grid(choose: random.Random, pipeline: bool = True) -> Layout:
    return layout(choose, choose.choice((2, 3, 4)), choose.choice((3, 4)), choose.choice((2, 3)) if pipeline else 1)


def _job(choose: random.Random, grid: Layout, steps: int = 6) -> Simulation:
    return Simulation(grid.groups(), training(grid, steps), ahead=choose.randrange(0, 5))


def _any_place(choose: random.Random, program: list[Call]) -> int:
    return choose.choice(places(program)[:-2])


def host_in_scattered_groups(choose: random.Random) -> Made:
    """A host stands still; its tensor group waits, then the pipeline, then all."""
    job = _job(choose, grid := _grid(choose))
    rank = choose.randrange(grid.world)
    job.stands[rank] = _any_place(choose, job.programs[rank])
    return job.run().files(choose), truth(HOST, rank)


def device_in_scattered_groups(choose: random.Random) -> Made:
    """A device stops, its host queues on; timing is recorded, so that the others' calls are seen to have started."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    rank = choose.randrange(grid.world)
    job.frozen[rank] = choose.choice(places(job.programs[rank], "all_reduce"))
    return job.run().files(choose), truth(DEVICE, rank)


def two_hosts_at_once(choose: random.Random) -> Made:
    """Two hosts of different tensor groups stand in the same step."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    one = choose.randrange(grid.world)
    other = choose.choice([rank for rank in range(grid.world) if grid.of(rank)[1] != grid.of(one)[1]])
    spot = places(job.programs[one], "_all_gather_base")[0]
    job.stands = {one: spot, other: spot}
    return job.run().files(choose), truth(HOST, one, other)


def dead_and_standing(choose: random.Random) -> Made:
    """One rank died without a dump; in another tensor group a host stands. Both are true, and either may come first."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    one = choose.randrange(grid.world)
    other = choose.choice([rank for rank in range(grid.world) if grid.of(rank)[1] != grid.of(one)[1]])
    spot = places(job.programs[one], "_all_gather_base")[0]
    job.stands = {one: spot, other: spot}
    return job.run().files(choose, without=[one]), truth((HOST, DEAD), either=(one, other))


def lost_dumps_of_innocents(choose: random.Random) -> Made:
    """A host stands, and the dumps of two others were not gathered: that alone proves nothing against them."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    rank, *lost = choose.sample(range(grid.world), 3)
    job.stands[rank] = places(job.programs[rank], group=0)[0]
    return job.run().files(choose, without=lost), truth(HOST, rank)


def circle_of_three_receives(choose: random.Random) -> Made:
    """Three ranks receive from one another in a ring, all others wait for them in a sum."""
    job = _job(choose, grid := _grid(choose, pipeline=False), 3)
    ring = choose.sample(range(grid.world), 3)
    for place, rank in enumerate(ring):
        at = len(job.programs[rank]) - 1
        call = Call(0, "recv", peer=ring[(place + 1) % 3], waits=True, line=50)
        job.programs[rank] = [*job.programs[rank][:at], call, job.programs[rank][at]]
    return job.run().files(choose), truth(CIRCLE)


def receive_that_nobody_sends(choose: random.Random) -> Made:
    """One rank makes a receive too many; its partner and everybody else go on to the sum."""
    job = _job(choose, grid := _grid(choose), 4)
    rank, peer = choose.sample(range(grid.world), 2)
    at = places(job.programs[rank], group=0)[0]
    extra = Call(0, "recv", peer=peer, waits=True, line=60)
    job.programs[rank] = [*job.programs[rank][:at], extra, *job.programs[rank][at:]]
    return job.run().files(choose), truth(PARTNER, rank)


def cut_dumps_of_two_forms(choose: random.Random) -> Made:
    """Releases and forms are mixed, and a quarter of the waiting ranks' files break off at some place."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    rank = choose.randrange(grid.world)
    job.stands[rank] = _any_place(choose, job.programs[rank])
    files = job.run().files(choose, mixed=True)
    for name in choose.sample([one for one in sorted(files) if _rank(one) != rank], grid.world // 4):
        files[name] = files[name][: int(len(files[name]) * choose.uniform(0.3, 0.99))]
    return files, truth(HOST, rank)


def older_dumps_beside(choose: random.Random) -> Made:
    """Some ranks left a dump twice: one of before, in a folder of its own."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    rank = choose.randrange(grid.world)
    job.stands[rank] = _any_place(choose, job.programs[rank])
    seed = choose.random()
    files = job.run().files(random.Random(seed))
    before = replace(job, programs={one: calls[: len(calls) // 2] for one, calls in job.programs.items()}, stands={})
    older = before.run().files(random.Random(seed))
    return files | {f"before/{name}": older[name] for name in choose.sample(sorted(older), 4)}, truth(HOST, rank)


def another_world_beside(choose: random.Random) -> Made:
    """Dumps of a smaller job, healthy or broken, lie beside."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    rank = choose.randrange(grid.world)
    job.stands[rank] = _any_place(choose, job.programs[rank])
    small = _job(choose, layout(choose, 2, 2), 3)
    if choose.random() < 0.5:
        small.stands[choose.randrange(4)] = 8
    leftovers = {f"old/{name}": data for name, data in small.run().files(choose).items()}
    return job.run().files(choose) | leftovers, truth(HOST, rank)


def other_operation_in_short_rings(choose: random.Random) -> Made:
    """A rank calls another operation; every ring keeps another length."""
    job = _job(choose, grid := _grid(choose, pipeline=False), 8)
    rank = choose.randrange(grid.world)
    at = places(job.programs[rank], "all_reduce", group=0)[0]
    job.programs[rank] = changed(job.programs[rank], at, op="barrier")
    return job.run().files(choose, rings=True), truth(OPERATION, rank)


def host_in_short_rings(choose: random.Random) -> Made:
    """A host stands; every ring keeps another length, releases and forms are mixed."""
    job = _job(choose, grid := _grid(choose), 8)
    rank = choose.randrange(grid.world)
    job.stands[rank] = _any_place(choose, job.programs[rank])
    return job.run().files(choose, rings=True, mixed=True), truth(HOST, rank)


def groups_in_another_order(choose: random.Random) -> Made:
    """A rank sums over all before it sums its gradients, and waits there."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    rank = choose.randrange(grid.world)
    at = places(job.programs[rank], group=0)[1]
    program = job.programs[rank]
    swapped = [replace(program[at], waits=True), replace(program[at - 1], waits=True)]
    job.programs[rank] = [*program[: at - 1], *swapped, *program[at + 1 :]]
    for other in set(range(grid.world)) - {rank}:  # all hosts wait for their gradients
        job.programs[other] = [replace(call, waits=True) for call in job.programs[other]]
    return job.run().files(choose), truth(ORDER, rank)


def one_step_less(choose: random.Random) -> Made:
    """Uneven data: a rank leaves the loop a step early and waits in the barrier at the end."""
    world = choose.randrange(4, 12)
    calls = [Call(0, "all_reduce", (size,)) for size in (512, 64)] * 12
    programs = {rank: [*calls, Call(0, "barrier", (), waits=True)] for rank in range(world)}
    rank = choose.randrange(world)
    programs[rank] = [*calls[:-2], Call(0, "barrier", (), waits=True)]
    job = Simulation([tuple(range(world))], programs, ahead=choose.randrange(0, 4))
    return job.run().files(choose), truth(OPERATION, rank)


def halves_that_disagree(choose: random.Random) -> Made:
    """Half of the ranks validate while half train: nobody can say who is right."""
    half = choose.randrange(2, 6)
    calls = [Call(0, "all_reduce", (512,))] * 10
    away = set(choose.sample(range(2 * half), half))
    programs = {rank: [*calls, Call(0, "all_gather" if rank in away else "all_reduce", (512,), waits=True)] for rank in range(2 * half)}  # fmt: skip
    return Simulation([tuple(range(2 * half))], programs).run().files(choose), truth((OPERATION, CIRCLE))


def cut_network(choose: random.Random) -> Made:
    """No data goes through one group of gradients any more; all its members came. Nobody broke formation."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    job.cut = {grid.of(choose.randrange(grid.world))[2]}
    job.cut_after = choose.randrange(2, 4)
    return job.run().files(choose), truth(NETWORK)


def another_size_in_a_tensor_group(choose: random.Random) -> Made:
    """A rank gathers another number of elements in a group of three or more."""
    job = _job(choose, grid := layout(choose, choose.choice((3, 4)), 3, 2))
    rank = choose.randrange(grid.world)
    at = choose.choice(places(job.programs[rank], "_all_gather_base"))
    job.programs[rank] = changed(job.programs[rank], at, size=(65,))
    return job.run().files(choose), truth(SIZE, rank)


def healthy(choose: random.Random) -> Made:
    """A whole job that ended; rings and releases as they come."""
    job = _job(choose, _grid(choose))
    return job.run().files(choose, rings=True, mixed=True), truth(())


def pipeline_behind_a_device(choose: random.Random) -> Made:
    """A device in the middle of a pipeline stops in its tensor group's call."""
    job = _job(choose, grid := _grid(choose))
    rank = choose.randrange(grid.world)
    job.frozen[rank] = choose.choice(places(job.programs[rank], "_all_gather_base"))
    return job.run().files(choose), truth(DEVICE, rank)


def the_culprits_dump_is_cut(choose: random.Random) -> Made:
    """The one dump that could tell breaks off: the hang is said, and nobody is accused."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    rank = choose.randrange(grid.world)
    job.stands[rank] = places(job.programs[rank], "_all_gather_base")[2]
    files = job.run().files(choose)
    name = f"nccl_trace_rank_{rank}"
    return files | {name: files[name][: len(files[name]) // 2]}, truth("awaited-trace-breaks-off")


def a_node_is_gone(choose: random.Random) -> Made:
    """A node with a quarter of the ranks went down: they left no dump."""
    job = _job(choose, grid := layout(choose, 2, 8))
    gone = choose.sample(range(grid.world), 4)
    spot = places(job.programs[gone[0]], "_all_gather_base")[0]
    job.stands = dict.fromkeys(gone, spot)
    return job.run().files(choose, without=gone), truth(DEAD, *gone)


def few_dumps_were_gathered(choose: random.Random) -> Made:
    """Three dumps of a large job, none of them the culprit's: too little to accuse anybody."""
    job = _job(choose, grid := layout(choose, 4, 4))
    rank, *kept = choose.sample(range(grid.world), 4)
    job.stands[rank] = places(job.programs[rank], group=0)[0]
    return job.run().files(choose, without=set(range(grid.world)) - set(kept)), truth(())


def a_send_to_the_wrong_stage(choose: random.Random) -> Made:
    """A rank sends its activations to a rank of another replica, whose partner's receive goes without."""
    job = _job(choose, grid := layout(choose, 2, 3, 2))
    rank = grid.place[choose.randrange(6)]  # of the first stage
    right = grid.stage_mate(rank, 1)
    wrong = choose.choice([one for one in grid.place[6:] if one != right])
    at = places(job.programs[rank], "send")[0]
    job.programs[rank] = changed(job.programs[rank], at, group=0, peer=wrong)
    return job.run().files(choose), truth((PARTNER, CIRCLE), either=(rank, right))


def order_turned_in_pairs(choose: random.Random) -> Made:
    """Gradients are summed in pairs, so the pair ties; what the ranks did in earlier steps tells who turned the order."""
    job = _job(choose, grid := layout(choose, choose.choice((2, 3, 4)), 2))
    rank = choose.randrange(grid.world)
    for other, program in job.programs.items():
        job.programs[other] = [replace(call, waits=True) for call in program]
    at = places(job.programs[rank], group=0)[1]
    program = job.programs[rank]
    job.programs[rank] = [*program[: at - 1], program[at], program[at - 1], *program[at + 1 :]]
    return job.run().files(choose), truth(ORDER, rank)


def device_without_timing(choose: random.Random) -> Made:
    """A device stops, and nothing was recorded of what started: all look alike."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    rank = choose.randrange(grid.world)
    job.frozen[rank] = choose.choice(places(job.programs[rank], "all_reduce"))
    job.run()
    for calls in job.issued.values():
        for one in calls:
            one.started = False
    return job.files(choose), truth(NETWORK)


def other_operation_and_a_dead_rank(choose: random.Random) -> Made:
    """In one tensor group operations differ, in another a rank died: either may come first, nobody else."""
    job = _job(choose, grid := layout(choose, 4, 3))
    one = choose.randrange(grid.world)
    other = choose.choice([rank for rank in range(grid.world) if grid.of(rank)[1] != grid.of(one)[1]])
    at = places(job.programs[one], "_all_gather_base")[0]
    job.programs[one] = changed(job.programs[one], at, op="all_reduce")
    job.stands[other] = at
    return job.run().files(choose, without=[other]), truth((OPERATION, DEAD), either=(one, other))


def never_came_to_its_group(choose: random.Random) -> Made:
    """A rank never makes a call in its tensor group at all: it stands before the first."""
    job = _job(choose, grid := _grid(choose, pipeline=False))
    rank = choose.randrange(grid.world)
    job.programs = {one: [Call(0, "barrier", (), waits=True), *calls] for one, calls in job.programs.items()}
    job.stands[rank] = 1
    return job.run().files(choose), truth(HOST, rank)


def dumps_of_a_job_that_runs(choose: random.Random) -> Made:
    """Nothing is wrong; each rank was asked at another moment."""
    grid = _grid(choose, pipeline=False)
    files: dict[str, bytes] = {}
    seed = choose.random()
    for steps in (4, 5, 6):
        job = Simulation(grid.groups(), training(grid, steps), ahead=2).run()
        late = random.Random(seed)
        mine = choose.sample(range(grid.world), grid.world // 2) if files else range(grid.world)
        files |= {f"nccl_trace_rank_{rank}": pickle.dumps(job.dump(rank, late), 2) for rank in mine}
    return files, truth(())


def _rank(name: str) -> int:
    return int(name.rsplit("_", 1)[1].partition(".")[0])


SITUATIONS: tuple[Callable[[random.Random], Made], ...] = (
    host_in_scattered_groups,
    device_in_scattered_groups,
    two_hosts_at_once,
    dead_and_standing,
    lost_dumps_of_innocents,
    circle_of_three_receives,
    receive_that_nobody_sends,
    cut_dumps_of_two_forms,
    older_dumps_beside,
    another_world_beside,
    other_operation_in_short_rings,
    host_in_short_rings,
    groups_in_another_order,
    one_step_less,
    halves_that_disagree,
    cut_network,
    another_size_in_a_tensor_group,
    healthy,
    pipeline_behind_a_device,
    the_culprits_dump_is_cut,
    a_node_is_gone,
    few_dumps_were_gathered,
    a_send_to_the_wrong_stage,
    order_turned_in_pairs,
    device_without_timing,
    other_operation_and_a_dead_rank,
    never_came_to_its_group,
    dumps_of_a_job_that_runs,
)
