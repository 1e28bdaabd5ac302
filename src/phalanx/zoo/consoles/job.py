"""A simulated job: hosts, ranks, GPUs, process groups, and the releases of PyTorch and NCCL it runs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

TORCH = ("1.13", "2.0", "2.2", "2.4", "2.6", "2.9", "2.13")
# the NCCL that each release of PyTorch ships, with the CUDA it was built for
NCCL = {
    "1.13": ("2.14.3", "11.7"),
    "2.0": ("2.14.3", "11.7"),
    "2.2": ("2.19.3", "12.1"),
    "2.4": ("2.20.5", "12.4"),
    "2.6": ("2.21.5", "12.4"),
    "2.9": ("2.27.5", "12.8"),
    "2.13": ("2.27.7", "13.0"),
}
# containers bring their own: older and newer ones that are met in the field
OTHER_NCCL = {"1.13": ("2.10.3", "11.3"), "2.2": ("2.18.6", "12.1"), "2.6": ("2.26.2", "12.6")}
# large jobs take long to diagnose: one console in thirty
WORLDS = (8, 8, 16, 16, 16, 24, 32, 32, 64, 64)
LARGE = (128, 256, 512, 1024)
PARALLELISMS = ("ddp", "fsdp", "megatron", "zero")
_BUSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")


@dataclass(frozen=True, slots=True)
class Group:
    """A process group: its number in the job, the name its maker gave it, and its global ranks in order."""

    uid: int
    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """Who runs where. `groups` begins with the default group of all ranks."""

    world: int
    per_node: int
    torch: str
    nccl: str
    cuda: str
    parallelism: str
    groups: tuple[Group, ...]
    hosts: tuple[str, ...]
    timeout_ms: int
    seed: int
    pids: tuple[int, ...] = field(repr=False, default=())

    @property
    def nodes(self) -> int:
        return self.world // self.per_node

    def node(self, rank: int) -> int:
        return rank // self.per_node

    def local(self, rank: int) -> int:
        return rank % self.per_node

    def host(self, rank: int) -> str:
        return self.hosts[self.node(rank)]

    def ip(self, node: int) -> str:
        return f"10.{20 + self.seed % 40}.{node // 200}.{11 + node % 200}"

    def pci(self, rank: int) -> str:
        return f"0000:{_BUSES[self.local(rank)]}:00"

    def bus(self, rank: int) -> str:
        """The bus id as NCCL prints it: hexadecimal, without leading zeros."""
        return f"{_BUSES[self.local(rank)].lstrip('0')}000"

    def ranks_of(self, node: int) -> range:
        return range(node * self.per_node, (node + 1) * self.per_node)

    def group_id(self, group: Group, rank: int) -> int:
        """The number that a rank itself gives a group: it counts only those it belongs to."""
        return [one.uid for one in self.groups if rank in one.ranks].index(group.uid)

    def agent_pid(self, node: int) -> int:
        return 3000 + self.seed % 900 + node * 17


def make_job(rng: random.Random, *, nodes: int | None = None, most: int = 1024) -> Job:
    """A job drawn at random; `nodes` asks for at least so many."""
    sizes = LARGE if rng.random() < 1 / 30 and most >= LARGE[0] else WORLDS
    worlds = [one for one in sizes if one <= most and (nodes is None or one >= nodes * 8)]
    world = rng.choice(worlds or [(nodes or 1) * 8])
    torch = rng.choice(TORCH)
    nccl, cuda = (OTHER_NCCL if torch in OTHER_NCCL and rng.random() < 0.3 else NCCL)[torch]
    parallelism = rng.choice(PARALLELISMS)
    stem = rng.choice(("node", "gpu", "dgx-", "worker-", "p4d-"))
    first = rng.randrange(1, 60)
    hosts = tuple(f"{stem}{first + node:03d}" for node in range(world // 8))
    start = rng.randrange(4000, 90000)
    return Job(
        world=world,
        per_node=8,
        torch=torch,
        nccl=nccl,
        cuda=cuda,
        parallelism=parallelism,
        groups=groups_of(world, parallelism),
        hosts=hosts,
        timeout_ms=rng.choice((600000, 600000, 1800000)),
        seed=rng.randrange(1 << 30),
        pids=tuple(start + rank // 8 * 977 + rank % 8 for rank in range(world)),
    )


def groups_of(world: int, parallelism: str) -> tuple[Group, ...]:
    """The groups in the order in which the frameworks create them."""
    made = [("default_pg", tuple(range(world)))]
    if parallelism == "megatron":
        tensor = 4 if world < 64 else 8
        pipeline = 2
        stage = world // pipeline
        made += [
            ("DATA_PARALLEL_GROUP", tuple(range(start * stage + one, (start + 1) * stage, tensor)))
            for start in range(pipeline)
            for one in range(tensor)
        ]
        made += [("TENSOR_MODEL_PARALLEL_GROUP", tuple(range(one, one + tensor))) for one in range(0, world, tensor)]
        made += [("PIPELINE_MODEL_PARALLEL_GROUP", tuple(range(one, world, stage))) for one in range(stage)]
        made += [("EXPERT_MODEL_PARALLEL_GROUP", tuple(range(one, one + tensor))) for one in range(0, world, tensor)]
    if parallelism == "fsdp" and world > 8:
        made += [("mesh_fsdp", tuple(range(one, one + 8))) for one in range(0, world, 8)]
        made += [("mesh_replicate", tuple(range(one, world, 8))) for one in range(8)]
    return tuple(Group(uid, name, ranks) for uid, (name, ranks) in enumerate(made))
