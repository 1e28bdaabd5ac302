"""A resumed run against the one that was not interrupted: from which step on it differs, and which state it lacks.

What was saved is what the killed run held then. So the first step of the resumed run is compared with the step that
followed the save in a run that went on: parameters, the optimizer's state, learning rate, loss scale, batch and random state.
"""

from __future__ import annotations

from typing import Any

from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import RankEvidence
from phalanx.verification.found import Found
from phalanx.verification.replicas import SAME, distance
from phalanx.verification.resumption import (
    LOOSE,
    Resumption,
    apart,
    batches_at,
    by_step,
    first_steps,
    loss_words,
    pairs_of,
)


def compare(found: Resumption) -> list[Found]:
    """What the resumed run lacks, gravest first; nothing if it goes on as the other did."""
    for judgement in (_started_anew, _parameters):
        told = judgement(found)
        if told is not None:
            return [told]
    return [one for judgement in (_moments, _rates, _scales, _data, _chance) if (one := judgement(found)) is not None]


def first_difference(found: Resumption) -> tuple[int, str] | None:
    """The first step, from 1, after which weights or losses differ, and how; None if none does."""
    for rank, resumed in found.resumed.ranks.items():
        there = by_step(found.going_on.ranks.get(rank))
        for mine in resumed.steps:
            other = there.get((mine.optimizer, mine.step + found.step))
            if other is None or not mine.is_looked_at or not other.is_looked_at:
                continue
            if apart(mine.after, other.after, LOOSE):
                return mine.step + found.step + 1, loss_words(mine, other)
    return None


def _started_anew(found: Resumption) -> Found | None:
    """Weights as at the very beginning."""
    for rank, mine, other in first_steps(found):
        begun = by_step(found.going_on.ranks[rank]).get((mine.optimizer, 0))
        if begun is None or not mine.before or not found.step:
            continue
        if not apart(mine.before, begun.before, SAME) and apart(mine.before, other.before, SAME):
            return Found(
                cause="resume-starts-anew",
                headline=f"The resumed run starts from the first step's weights again: nothing of step {found.step} was loaded"
                f"{found.saved.words('model', 'the weights')}.",
                line=found.load_line or found.save_line,
                pattern="fix-behavior-logic",
                do="Load the checkpoint before training, into the model that is trained, and without `strict=False`; check that the option given with --resume-with is the one the script reads.",
                why="Training begins again, and the steps before are lost without an error.",
                title="Nothing was resumed",
                quotes=((rank, mine.line, "weights before the first resumed step are those before step 1"),),
            )
    return None


def _parameters(found: Resumption) -> Found | None:
    for rank, mine, other in first_steps(found):
        odd = apart(mine.before, other.before, SAME)
        if odd:
            held = found.resumed.ranks[rank].optimizers[mine.optimizer].parameters
            names = [held[place].name for place in odd if place < len(held)]
            more = f" and {len(names) - 2} more" if len(names) > 2 else ""
            listed = ", ".join(f"`{name}`" for name in names[:2])
            return Found(
                cause="resumed-weights-differ",
                headline=f"On {name_ranks((rank,))} {len(odd)} of {len(mine.before)} parameters are not those of step {found.step} after the resume: {listed}{more}.",
                line=found.load_line or found.save_line,
                pattern="fix-behavior-logic",
                do="Load with `strict=True` and on every rank; save after the optimizer's step, on all ranks at the same step.",
                why="What was not loaded keeps its initial values.",
                title="Not all weights were resumed",
                affected=(rank,),
                quotes=((rank, mine.line, f"{len(odd)} parameters differ before the first resumed step"),),
            )
    return None


def _moments(found: Resumption) -> Found | None:
    for rank, mine, other in first_steps(found):
        before = by_step(found.going_on.ranks[rank]).get((mine.optimizer, other.step - 1))
        if before is None or mine.state_before is None or not any(before.state):
            continue
        odd = [
            place
            for place, (a, b) in enumerate(zip(mine.state_before, before.state, strict=False))
            if _state_differs(a, b)
        ]
        if odd:
            held = found.resumed.ranks[rank].optimizers[mine.optimizer]
            empty = not any(mine.state_before)
            how = (
                "starts without moments"
                if empty
                else f"has other moments for {len(odd)} of {len(before.state)} parameters"
            )
            return Found(
                cause="optimizer-state-not-resumed",
                headline=f"After the resume {held.cls} {how}: the optimizer's state of step {found.step} was not restored{found.saved.words('optimizer', 'the optimizer state')}.",
                line=_line(found, "optimizer"),
                pattern="fix-optimizer",
                do="Save `optimizer.state_dict()` with the model and call `optimizer.load_state_dict(...)` after the optimizer is made and before the first step.",
                why="Without its moments the optimizer takes other steps, and the loss jumps.",
                title="The optimizer's state is not resumed",
                affected=(rank,),
                quotes=((rank, mine.line, f"first such parameter: `{held.parameters[odd[0]].name}`"),),
            )
    return None


def _state_differs(one: Any, two: Any) -> bool:
    if len(one) != len(two):
        return True
    return any(
        (distance(tuple(a), tuple(b)) > SAME) if isinstance(a, list | tuple) and isinstance(b, list | tuple) else a != b
        for a, b in zip(one, two, strict=True)
    )


def _line(found: Resumption, state: str) -> str:
    """Where it is to be mended: at the load, if the files hold the state, else at the save."""
    return (found.load_line or found.save_line) if state in found.saved.states else found.save_line


def _rates(found: Resumption) -> Found | None:
    for rank, mine, other in pairs_of(found):
        if mine.lr != other.lr and mine.lr and other.lr:
            cls = next((one["cls"] for one in found.resumed.ranks[rank].all("scheduler")), "")
            who = f"{cls} " if cls else "The schedule "
            return Found(
                cause="scheduler-not-resumed",
                headline=f"{who}is not resumed: at step {mine.step + found.step + 1} the learning rate is {mine.lr[0]:.4g} instead of {other.lr[0]:.4g}{found.saved.words('scheduler', 'a scheduler state')}.",
                line=_line(found, "scheduler"),
                pattern="fix-learning-rate",
                do="Save `scheduler.state_dict()` and load it into the scheduler after the optimizer's state was loaded; with a schedule by epoch or step, continue the count from the saved one.",
                why="Warm-up or decay starts again.",
                title="The learning-rate schedule is not resumed",
                affected=(rank,),
                quotes=((rank, mine.line, f"learning rates {list(mine.lr)} instead of {list(other.lr)}"),),
            )
    return None


def _scales(found: Resumption) -> Found | None:
    for rank, mine, other in pairs_of(found):
        scales = [next((one["scale"] for one in step.all("scaler")), None) for step in (mine, other)]
        if None not in scales and scales[0] != scales[1]:
            return Found(
                cause="scaler-not-resumed",
                headline=f"The loss scaler is not resumed: at step {mine.step + found.step + 1} its scale is {scales[0]:g} instead of {scales[1]:g}{found.saved.words('scaler', 'a scaler state')}.",
                line=_line(found, "scaler"),
                pattern="fix-behavior-logic",
                do="Save `scaler.state_dict()` and call `scaler.load_state_dict(...)` before the first step.",
                why="The scale starts at its initial value: steps are skipped until it has come down again.",
                title="The loss scaler is not resumed",
                affected=(rank,),
                quotes=((rank, mine.line, f"scale {scales[0]} instead of {scales[1]}"),),
            )
    return None


def _data(found: Resumption) -> Found | None:
    """Other batches at the same step: told with what they are, where samplers tell their indices."""
    for rank, mine, other in pairs_of(found):
        here, there = found.resumed.ranks[rank], found.going_on.ranks[rank]
        wanted = batches_at(there, other.step)
        got = batches_at(here, mine.step)[-len(wanted) :]  # before the first step batches may be skipped
        if not got or not wanted or got == wanted:
            continue
        if [ids for _, ids in got] == [ids for _, ids in wanted] and got[0][1] is not None:
            continue  # the same samples, changed at random: told by the random states
        first = batches_at(there, 0)
        epochs = [_epoch(one, step) for one, step in ((here, mine.step), (there, other.step))]
        again = got == first
        from_epoch = epochs[0] is not None and epochs[1] is not None and epochs[0] != epochs[1]
        how = (
            "gets the batch of step 1 again"
            if again
            else f"is in epoch {epochs[0]} instead of {epochs[1]} (`set_epoch`)"
            if from_epoch
            else "gets other samples"
        )
        return Found(
            cause="epoch-not-resumed" if from_epoch and not again else "sampler-position-not-resumed",
            headline=f"After the resume the data loader {how}: at step {mine.step + found.step + 1} {name_ranks((rank,))} trains on other data than the uninterrupted run{found.saved.words('sampler', 'a sampler position')}.",
            line=_line(found, "sampler"),
            pattern="fix-dataset-api-usage",
            do="Save the epoch and the number of batches taken; after the resume call `sampler.set_epoch(epoch)` and skip that many batches (`itertools.islice`, `accelerator.skip_first_batches`, or a stateful data loader).",
            why="Samples before the kill are seen twice, those after it not at all in this epoch.",
            title="The sampler's position is not resumed",
            affected=(rank,),
            quotes=((rank, mine.line, f"indices {_ids(got)} instead of {_ids(wanted)}"),),
        )
    return None


def _ids(batches: list[tuple[Any, Any]]) -> str:
    ids = batches[0][1]
    return f"{list(ids)[:6]}{' …' if len(ids) > 6 else ''}" if ids else "unknown"


def _epoch(evidence: RankEvidence, step: int) -> int | None:
    epochs = [
        one["set_epoch"] for one in evidence.all("epoch") if one["step"] <= step and one.get("set_epoch") is not None
    ]
    return epochs[-1] if epochs else None


def _chance(found: Resumption) -> Found | None:
    """Random states matter where something draws from them: dropout, or changed samples of the same indices."""
    for rank, mine, other in pairs_of(found):
        ours, theirs = ([one for one in step.all("forward") if one.get("rng") is not None] for step in (mine, other))
        if not ours or not theirs or ours[0]["rng"] == theirs[0]["rng"]:
            continue
        here, there = found.resumed.ranks[rank], found.going_on.ranks[rank]
        wanted = batches_at(there, other.step)
        got = batches_at(here, mine.step)[-len(wanted) :]
        same_ids = bool(got) and [ids for _, ids in got] == [ids for _, ids in wanted] and got[0][1] is not None
        changed = same_ids and got != wanted
        if not (ours[0].get("dropout") or changed):
            continue
        ranks = tuple(sorted(found.resumed.ranks))
        what = "augments the same samples otherwise" if changed else "drops other elements"
        return Found(
            cause="random-state-not-resumed",
            headline=f"The random state of {name_ranks((rank,))} is not resumed: at step {mine.step + found.step + 1} the run {what} than the uninterrupted one{found.saved.words('random', 'random states')}.",
            line=_line(found, "random"),
            pattern="fix-consistency-between-devices",
            do="Save on every rank `torch.get_rng_state()` (and those of CUDA, NumPy and random) under a name with its rank, and restore them last, just before the first step.",
            why="The resumed run is another run: it cannot be compared with the first, and noise that was drawn is drawn again.",
            title="Random states are not resumed",
            affected=ranks,
            quotes=((rank, mine.line, "PyTorch's random state before the forward pass differs"),),
        )
    return None
