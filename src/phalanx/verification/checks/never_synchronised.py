"""Several ranks train the same model and nothing ever brings them together: the model was never wrapped."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, Sketch, Step
from phalanx.verification.found import NOT_PARALLEL, Found
from phalanx.verification.reduction import own_factor, reductions
from phalanx.verification.replicas import (
    FAR,
    SAME,
    Replica,
    averages_parameters,
    calls_of,
    comparable,
    is_model_parallel,
    keeps_models_apart,
    replicas_of,
    spread,
)

_ABOUT_GRADIENTS = ("grad", "grad-copy")


def check(evidence: Evidence) -> Iterator[Found]:
    """Where a model of their own on each rank is not what the script is for."""
    yield from _beside_sharded(evidence)
    if averages_parameters(evidence) or is_model_parallel(evidence):
        return
    if _reduces_gradients(evidence):
        yield from _beside_wrapped(evidence)
        return
    for optimizer in evidence.optimizers:
        plain = [one for one in replicas_of(evidence, optimizer) if one.wrapper is None and one.parameter.is_whole]
        steps = [(number, at) for number, at in evidence.common_steps(optimizer) if comparable(at)]
        if not plain or len(plain[0].ranks) < 2 or not steps:
            continue
        ranks = plain[0].ranks
        starts_alike = _start_alike(plain, steps)
        held = [evidence.ranks[rank].optimizers[optimizer].hyper for rank in ranks]
        if _rates_differ(steps) or any(one != held[0] for one in held) or not (starts_alike or _shards_data(evidence)):
            continue
        if keeps_models_apart(evidence, ranks) and not (starts_alike and _shards_data(evidence)):
            continue
        if _apart(plain, steps):
            yield _found(evidence, optimizer, ranks, steps)
            return
        if _repeats(evidence, plain, steps):
            yield _repeated(evidence, optimizer, ranks, steps)
            return


def _beside_wrapped(evidence: Evidence) -> Iterator[Found]:
    """A model that nobody wrapped beside one that DDP keeps together: each rank uses its own gradients as they are."""
    calls = [call for one in evidence.ranks.values() for call in calls_of(one.events)]
    if not all(one.wrapped for one in evidence.ranks.values()) or any(
        call["what"] in _ABOUT_GRADIENTS and call["red"] for call in calls
    ):
        return
    for optimizer in evidence.optimizers:
        plain = [one for one in replicas_of(evidence, optimizer) if one.wrapper is None and one.parameter.is_whole]
        steps = [(number, at) for number, at in evidence.common_steps(optimizer) if comparable(at)]
        if not plain or len(steps) < 2 or not _start_alike(plain, steps) or not _apart(plain, steps):
            continue
        found = [[one for one in reductions(plain, at) if one.is_telling] for _, at in steps]
        if all(at and abs((own_factor(at) or 0.0) - 1) < FAR for at in found):
            yield _unwrapped(evidence, optimizer, plain, steps[0][1])
            return


def _beside_sharded(evidence: Evidence) -> Iterator[Found]:
    """Parameters that `fully_shard` was not given, in a model whose other parts it shards, on ranks with data of their own."""
    for optimizer in evidence.optimizers:
        plain = [one for one in replicas_of(evidence, optimizer) if one.wrapper is None and one.parameter.is_whole]
        held = evidence.holders(optimizer)
        shards = [p.shard for one in held.values() for p in one.parameters if isinstance(p.shard, tuple)]
        steps = [(number, at) for number, at in evidence.common_steps(optimizer) if comparable(at)]
        is_one_mesh = all(len(shard[0]) == 1 and tuple(shard[2]) == tuple(sorted(held)) for shard in shards)
        if not plain or not shards or not is_one_mesh or len(steps) < 2 or not _sees_other_data(steps):
            continue
        found = [[one for one in reductions(plain, at) if one.is_telling] for _, at in steps]
        if _start_alike(plain, steps) and all(at and abs((own_factor(at) or 0.0) - 1) < FAR for at in found):
            yield _unsharded(evidence, optimizer, plain, steps[0][1])
            return


def _sees_other_data(steps: list[tuple[int, dict[int, Step]]]) -> bool:
    """Ranks of a tensor-parallel model are given the same input; those of FSDP are not."""
    marks = [[str([one.get("mark") for one in step.all("forward")]) for step in at.values()] for _, at in steps]
    return all(len(set(at)) == len(at) for at in marks)


def _unsharded(evidence: Evidence, optimizer: int, plain: list[Replica], at: dict[int, Step]) -> Found:
    first = plain[0]
    step = at[first.ranks[0]]
    name = evidence.ranks[first.ranks[0]].optimizers[optimizer].line.rpartition(":")[0]
    calls = [number for number, text in enumerate(evidence.lines(name), 1) if "fully_shard(" in text]
    line = f"{name}:{calls[-1]}" if calls else step.line
    more = f" and {len(plain) - 1} more" if len(plain) > 1 else ""
    return Found(
        cause="gradients-partly-reduced",
        headline=f"`{first.parameter.name}`{more} are in no module that `fully_shard` was called on (last at {line}): each of {name_ranks(first.ranks)} steps with its own gradient from step 1 on, "
        "while those of the sharded parts are averaged.",
        line=line,
        pattern="fix-distributed-api-usage",
        do="Call `fully_shard(model)` on the root as well, after its blocks and before the optimizer is made.",
        why="FSDP2 reduces the gradients of the modules that it was applied to, and no others: the copies of the rest drift apart.",
        title="A part of the model is not sharded",
        explains=("weights-diverge", "initial-weights-differ", "gradients-never-synchronised"),
        quotes=first.quotes({rank: one.grad for rank, one in at.items()}, {rank: one.line for rank, one in at.items()}, "in the gradient that is used"),
    )  # fmt: skip


def _unwrapped(evidence: Evidence, optimizer: int, plain: list[Replica], at: dict[int, Step]) -> Found:
    first = plain[0]
    made = evidence.ranks[first.ranks[0]].optimizers[optimizer].line
    more = f" and {len(plain) - 1} more" if len(plain) > 1 else ""
    lines = {rank: step.line for rank, step in at.items()}
    return Found(
        cause="gradients-partly-reduced",
        headline=f"`{first.parameter.name}`{more} of the optimizer at {made} lie in a model that is not wrapped in DDP: each of {name_ranks(first.ranks)} steps with its own gradient from step 1 on, "
        "while those of the wrapped model are averaged.",
        line=made,
        pattern="fix-distributed-api-usage",
        do="Wrap this model in DistributedDataParallel as well, before its optimizer is made, and call it through the wrapper.",
        why="DDP averages the gradients of the module it was given, and no others: the copies of this one drift apart.",
        title="A model beside the wrapped one is not synchronised",
        explains=("weights-diverge", "initial-weights-differ"),
        quotes=first.quotes({rank: step.grad for rank, step in at.items()}, lines, "in the gradient that is used"),
    )  # fmt: skip


def _reduces_gradients(evidence: Evidence) -> bool:
    """Any reduction of gradients, or of that much, says that somebody thought of it: other checks look at how."""
    for one in evidence.ranks.values():
        most = max((sum(_count(p.shape) for p in held.parameters) for held in one.optimizers.values()), default=0)
        for call in calls_of(one.events):
            if call["what"] in _ABOUT_GRADIENTS or (call["op"] != "broadcast" and 2 * call["n"] >= most > 2):
                return True
    return False


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for one in shape:
        total *= one
    return total


def _start_alike(plain: list[Replica], steps: list[tuple[int, dict[int, Step]]]) -> bool:
    number, first = steps[0]
    return number == 0 and all(
        spread(one.of({rank: step.before for rank, step in first.items()})) <= SAME for one in plain
    )


def _shards_data(evidence: Evidence) -> bool:
    """A sampler that gives each rank its part: the ranks are meant to work on one model."""
    for one in evidence.ranks.values():
        for loader in one.all("loader"):
            told = loader.get("told", {})
            if isinstance(told.get("num_replicas"), int) and told["num_replicas"] > 1:
                return True
    return False


def _rates_differ(steps: list[tuple[int, dict[int, Step]]]) -> bool:
    """Ranks that try different settings are meant to be apart."""
    return any(len({step.lr for step in at.values()}) > 1 for _, at in steps)


def _apart(plain: list[Replica], steps: list[tuple[int, dict[int, Step]]]) -> bool:
    """Each rank steps with its own gradient, at every step, and they differ."""
    for _, at in steps:
        own = {rank: step.own for rank, step in at.items()}
        grads = {rank: step.grad for rank, step in at.items()}
        moving = [one for one in plain if all(value is not None for value in one.of(own) + one.of(grads))]
        if not moving or not any(spread(one.of(grads)) > FAR for one in moving):
            return False
    return True


def _repeats(evidence: Evidence, plain: list[Replica], steps: list[tuple[int, dict[int, Step]]]) -> bool:
    """Without any process group, the same weights and the same gradients on all ranks at every step."""
    if len(steps) < 2 or evidence.framework != "torch" or any(one.all("init") for one in evidence.ranks.values()):
        return False
    same = [
        spread(one.of({rank: values(step) for rank, step in at.items()})) <= SAME
        for _, at in steps
        for one in plain
        for values in (_gradients, _weights)
    ]
    return all(same)


def _gradients(step: Step) -> tuple[Sketch | None, ...]:
    return step.grad


def _weights(step: Step) -> tuple[Sketch | None, ...]:
    return step.after


def _repeated(
    evidence: Evidence, optimizer: int, ranks: tuple[int, ...], steps: list[tuple[int, dict[int, Step]]]
) -> Found:
    return Found(
        cause="ranks-repeat-the-same-work",
        headline=f"{len(ranks)} ranks do the same work: no process group is made, and all compute the same gradients on the same data at every step.",
        line=evidence.ranks[ranks[0]].optimizers[optimizer].line,
        pattern="fix-distributed-api-usage",
        do="Call `dist.init_process_group()`, give each rank its part of the data (DistributedSampler), and wrap the model in DistributedDataParallel.",
        why="It takes as long as on one device and gives what one device gives.",
        symptom=NOT_PARALLEL,
        title="Ranks repeat the same work",
    )  # fmt: skip


def _found(
    evidence: Evidence, optimizer: int, ranks: tuple[int, ...], steps: list[tuple[int, dict[int, Step]]]
) -> Found:
    one = evidence.ranks[ranks[0]]
    held = one.optimizers[optimizer]
    has_group = bool(one.all("init"))
    model = next((record for record in one.all("model") if record["kind"] == "module"), None)
    name = f"`{model['cls']}`" if model is not None else "the model"
    calls = calls_of(one.events)
    talk = (
        f"{len(calls)} collectives were called, none of them on gradients or parameters"
        if calls
        else "no collective was called"
    )
    if evidence.framework == "horovod":
        talk = "no gradient was reduced (the optimizer is not Horovod's)"
    why_none = "" if has_group or evidence.framework == "horovod" else " and no process group was made"
    number, first = steps[-1]
    return Found(
        cause="gradients-never-synchronised",
        headline=f"{len(ranks)} ranks each train a {name} of their own: in {number + 1} steps {talk}{why_none}, and their weights drift apart.",
        line=held.line,
        pattern="fix-distributed-api-usage",
        do=_cure(evidence.framework, has_group),
        why="Without a reduction of gradients every rank learns from its own part of the data only, and one of the models is saved.",
        symptom=NOT_PARALLEL,
        title="Ranks train without synchronising",
        explains=("weights-diverge", "initial-weights-differ", "gradients-not-synchronised"),
        quotes=tuple((rank, first[rank].line, f"after step {number + 1} the first parameter has norm {_norm(first[rank])}") for rank in ranks[:4]),
    )  # fmt: skip


def _cure(framework: str, has_group: bool) -> str:
    if framework == "horovod":
        return "Wrap the optimizer: `optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())`, and broadcast the weights from rank 0."
    first = "" if has_group else "Call `dist.init_process_group()` first. "
    return f"{first}Wrap the model before the optimizer is made: `model = DistributedDataParallel(model)`, and call it through the wrapper."


def _norm(step: Step) -> str:
    value = next((one for one in step.after if one is not None), None)
    return f"{value[2]:.9g}" if value is not None else "none"
