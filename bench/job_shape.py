"""The shape of a synthetic training job: its groups as Megatron builds them, and what a rank calls in a step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dump_bytes import Frame

# Ranks to (tensor, pipeline, data, expert) parallel sizes.
SHAPES = {16: (2, 4, 2, 2), 256: (8, 4, 8, 8), 1024: (8, 8, 16, 8), 10_000: (8, 10, 125, 5)}
TENSOR, PIPELINE, DATA, EXPERT, MODEL, EMBEDDING, WORLD = range(7)
DESCRIPTIONS = (
    "TENSOR_MODEL_PARALLEL_GROUP",
    "PIPELINE_MODEL_PARALLEL_GROUP",
    "DATA_PARALLEL_GROUP_WITH_CP",
    "EXPERT_MODEL_PARALLEL_GROUP",
    "MODEL_PARALLEL_GROUP",
    "EMBEDDING_GROUP",
    "default_pg",
)
_FIRST_NAME = 40  # groups made earlier took the lower numbers
_TORCH = "/opt/venv/lib/python3.11/site-packages/torch/distributed/"
_HIDDEN = [4096, 1, 5120]


@dataclass(frozen=True)
class Call:
    """One call of a step: in which kind of group, with which shapes, and to or from which stage."""

    kind: int
    op: str
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    frames: tuple[Frame, ...]
    dtype: str = "BFloat16"
    to: int | None = None  # the stage on the other side of a point-to-point
    nanoseconds: int = 300_000

    @property
    def p2p(self) -> bool:
        return self.to is not None


@dataclass(frozen=True)
class Shape:
    """How many ranks, in how many parts of each kind."""

    tensor: int
    pipeline: int
    data: int
    expert: int

    @property
    def ranks(self) -> int:
        return self.tensor * self.pipeline * self.data

    def stage(self, rank: int) -> int:
        return rank // (self.tensor * self.data)

    def group(self, kind: int, rank: int) -> tuple[int, range | tuple[int, ...]]:
        """The number of the rank's group among those of its kind, and the group's members."""
        tensor, data = self.tensor, self.data
        block = tensor * data
        t, d, p = rank % tensor, rank // tensor % data, rank // block
        if kind == TENSOR:
            return rank // tensor, range(rank - t, rank - t + tensor)
        if kind == PIPELINE:
            return t + tensor * d, range(t + tensor * d, self.ranks, block)
        if kind == DATA:
            return p * tensor + t, range(p * block + t, (p + 1) * block, tensor)
        if kind == EXPERT:
            part = d // self.expert
            start = p * block + part * self.expert * tensor + t
            return (p * (data // self.expert) + part) * tensor + t, range(start, start + self.expert * tensor, tensor)
        if kind == MODEL:
            return d, tuple(r for stage in range(self.pipeline) for r in range(stage * block + d * tensor, stage * block + (d + 1) * tensor))  # fmt: skip
        if kind == EMBEDDING:
            return t + tensor * d, (t + tensor * d, (self.pipeline - 1) * block + t + tensor * d)
        return 0, range(self.ranks)

    def counts(self) -> tuple[int, ...]:
        """How many groups there are of each kind but the world."""
        ranks = self.ranks
        return (ranks // self.tensor, ranks // self.pipeline, ranks // self.data, ranks // self.expert, self.data, ranks // self.pipeline)  # fmt: skip

    def name(self, kind: int, number: int) -> str:
        """The group's name: PyTorch counts all groups of the job, each rank makes all of them in the same order."""
        return "0" if kind == WORLD else str(_FIRST_NAME + sum(self.counts()[:kind]) + number)

    def kinds(self, stage: int) -> list[int]:
        """The kinds of groups that a rank of a stage uses, in the order in which it made them."""
        ends = stage in (0, self.pipeline - 1) and self.pipeline > 1
        return [WORLD, TENSOR, PIPELINE, DATA, EXPERT, MODEL] + ([EMBEDDING] if ends else [])


def shape_of(ranks: int, flat: bool = False) -> Shape:
    """The shape for so many ranks; flat without pipeline stages, all of them in the data-parallel groups instead."""
    tensor, pipeline, data, expert = SHAPES[ranks]
    return Shape(tensor, 1, data * pipeline, expert) if flat else Shape(tensor, pipeline, data, expert)


def _frames(*places: tuple[str, str, int]) -> tuple[Frame, ...]:
    own = tuple(Frame(name, f"/home/user/megatron/{file}", line) for name, file, line in places)
    outer = (
        Frame("train_step", "/home/user/megatron/training/training.py", 1394),
        Frame("train", "/home/user/megatron/training/training.py", 2271),
        Frame("<module>", "/home/user/job/pretrain_gpt.py", 388),
    )
    inner = (Frame("wrapper", _TORCH + "c10d_logger.py", 83),)
    return inner + own + outer


def _layer(frames_of: str, tensor: int) -> list[Call]:
    """The calls of one layer in one direction: sequence-parallel attention, then experts."""
    attention = _frames((frames_of, "core/tensor_parallel/mappings.py", 121), ("forward", "core/transformer/attention.py", 611))  # fmt: skip
    scatter = _frames((frames_of, "core/tensor_parallel/mappings.py", 163), ("forward", "core/transformer/attention.py", 702))  # fmt: skip
    experts = _frames((frames_of, "core/tensor_parallel/mappings.py", 424), ("forward", "core/transformer/moe/token_dispatcher.py", 559))  # fmt: skip
    whole, part = tuple(_HIDDEN), (_HIDDEN[0] // tensor, *_HIDDEN[1:])
    return [
        Call(TENSOR, "_all_gather_base", (part,), (whole,), attention),
        Call(TENSOR, "_reduce_scatter_base", (whole,), (part,), scatter),
        Call(EXPERT, "all_to_all", (part,), (part,), experts),
        Call(EXPERT, "all_to_all", (part,), (part,), experts),
    ]


def step_of(shape: Shape, stage: int, microbatches: int = 4, layers: int = 3) -> list[Call]:
    """What a rank of a stage calls in one step: all forwards, all backwards, gradients, the norm, the loss."""
    last = shape.pipeline - 1
    hidden = (tuple(_HIDDEN),)
    talk = _frames(("_communicate", "core/pipeline_parallel/p2p_communication.py", 299), ("forward_backward", "core/pipeline_parallel/schedules.py", 1940))  # fmt: skip
    calls: list[Call] = []

    def talk_to(op: str, other: int) -> None:
        if 0 <= other <= last:
            calls.append(Call(PIPELINE, op, hidden, hidden, talk, to=other, nanoseconds=200_000))

    for frames_of, before, after in (("forward", stage - 1, stage + 1), ("backward", stage + 1, stage - 1)):
        for _ in range(microbatches):
            talk_to("recv", before)
            for _ in range(layers):
                calls += _layer(frames_of, shape.tensor)
            talk_to("send", after)
    gradients = _frames(("start_grad_sync", "core/distributed/param_and_grad_buffer.py", 391))
    parameters = _frames(("start_param_sync", "core/distributed/param_and_grad_buffer.py", 231))
    norm = _frames(("get_grad_norm_fp32", "core/optimizer/clip_grads.py", 121))
    loss = _frames(("reduce_max_stat_across", "training/utils.py", 214))
    flat, shard = (40_960_000,), (40_960_000 // shape.data,)
    calls += [Call(DATA, "_reduce_scatter_base", (flat,), (shard,), gradients, "Float", nanoseconds=4_000_000)] * 2
    if EMBEDDING in shape.kinds(stage):
        calls.append(Call(EMBEDDING, "all_reduce", ((64128, 5120),), ((64128, 5120),), norm))
    calls.append(Call(MODEL, "all_reduce", ((1,),), ((1,),), norm, "Float"))
    calls += [Call(DATA, "_all_gather_base", (shard,), (flat,), parameters, nanoseconds=4_000_000)] * 2
    calls.append(Call(WORLD, "all_reduce", ((2,),), ((2,),), loss, "Float"))
    return calls


def other_shape(call: Call) -> Call:
    """The same call with tensors of another size, as a rank with a longer last batch makes it."""
    grown = tuple((one[0] + 8, *one[1:]) for one in call.inputs)
    return replace(call, inputs=grown, outputs=tuple((one[0] + 8, *one[1:]) for one in call.outputs))
