"""A training script that uses every kind of parallelism and of collective in turn; 4 ranks. Not a test: tests run it."""

from __future__ import annotations

import hashlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))


def ddp() -> nn.Module:
    return nn.parallel.DistributedDataParallel(net())


def fsdp2() -> nn.Module:
    from torch.distributed.fsdp import fully_shard

    model = net()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    return fully_shard(model)


def hsdp() -> nn.Module:
    from torch.distributed.fsdp import fully_shard

    mesh = dist.init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("replicas", "shards"))
    return fully_shard(net(), mesh=mesh)


def tensor_parallel() -> nn.Module:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    torch.manual_seed(0)
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    return parallelize_module(net(), mesh, {"0": ColwiseParallel(), "3": RowwiseParallel()})


def fsdp2_and_tensor_parallel() -> nn.Module:
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = dist.init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("data", "tensor"))
    model = parallelize_module(net(), mesh["tensor"], {"0": ColwiseParallel(), "3": RowwiseParallel()})
    return fully_shard(model, mesh=mesh["data"])


def fsdp1() -> nn.Module:
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(net(), device_id=torch.device("cpu"))


def compiled() -> nn.Module:
    return torch.compile(ddp(), backend="aot_eager")


def plain() -> nn.Module:
    model = net()
    for parameter in model.parameters():
        dist.broadcast(parameter.data, 0)
    return model


KINDS = {
    one.__name__: one for one in (ddp, fsdp2, hsdp, tensor_parallel, fsdp2_and_tensor_parallel, fsdp1, compiled, plain)
}


def train(kind: str, steps: int) -> str:
    """Returns a hash of this rank's part of the parameters after so many steps."""
    model = KINDS[kind]()
    data = torch.utils.data.TensorDataset(torch.randn(64, 32), torch.randn(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    done = 0
    while done < steps:
        for inputs, targets in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
            if done == steps:
                break
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            if kind == "plain":
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
            optimizer.step()
            done += 1
    return hash_of(
        [one.to_local() if hasattr(one, "to_local") else one for one in (one.detach() for one in model.parameters())]
    )


def calls() -> str:
    """Every kind of call once or more; returns a hash of all that this rank got."""
    rank, size = dist.get_rank(), dist.get_world_size()
    chance = torch.Generator().manual_seed(rank)

    def some(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=chance)

    got: list[torch.Tensor] = []
    large = some(3000)
    dist.all_reduce(large)
    later = some(3000)
    dist.all_reduce(later, async_op=True).wait()
    gathered = torch.zeros(size * 7)
    dist.all_gather_into_tensor(gathered, some(7))
    listed = [torch.zeros(5) for _ in range(size)]
    dist.all_gather(listed, some(5))
    scattered, scattered_later = torch.zeros(7), torch.zeros(7)
    dist.reduce_scatter_tensor(scattered, some(7 * size))
    dist.reduce_scatter_tensor(scattered_later, some(7 * size), async_op=True).wait()
    sent, reduced = some(9), some(9)
    dist.broadcast(sent, 1)
    dist.reduce(reduced, 0)
    at_root = [torch.zeros(4) for _ in range(size)] if rank == 0 else None
    dist.gather(some(4), at_root, dst=0)
    part, exchanged = torch.zeros(4), torch.zeros(size * 2)
    dist.scatter(part, [some(4) for _ in range(size)] if rank == 0 else None, src=0)
    dist.all_to_all_single(exchanged, some(size * 2))
    got += [
        large,
        later,
        gathered,
        *listed,
        scattered,
        scattered_later,
        sent,
        reduced,
        *(at_root or []),
        part,
        exchanged,
    ]
    got += point_to_point(some, rank)
    objects: list[object] = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "words": ["a", 1.5]})
    told = [{"a": 3}] if rank == 0 else [None]
    dist.broadcast_object_list(told, 0)
    got += [torch.tensor([float(one["rank"]) for one in objects]), torch.tensor([float(told[0]["a"])])]
    got += [functional.all_reduce(some(8), "sum", dist.group.WORLD) + 0]
    pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
    pair, brief = some(2000, 2), some(33).bfloat16()
    dist.all_reduce(pair, group=pairs[rank // 2], op=dist.ReduceOp.MAX)
    dist.all_reduce(brief)
    with torch.inference_mode():
        inferred = some(5)
        dist.all_reduce(inferred)
    dist.barrier()
    dist.monitored_barrier()
    return hash_of([*got, pair, brief.float(), inferred.clone()])


def point_to_point(some: object, rank: int) -> list[torch.Tensor]:
    peer, got = rank ^ 1, torch.zeros(11)
    if rank % 2 == 0:
        dist.send(some(11), peer)
        dist.recv(got, peer)
    else:
        dist.recv(got, peer)
        dist.send(some(11), peer)
    both = torch.zeros(3)
    pairs = [dist.P2POp(dist.isend, some(3), peer), dist.P2POp(dist.irecv, both, peer)]
    for work in dist.batch_isend_irecv(pairs):
        work.wait()
    anybody = torch.zeros(2)
    if rank:
        dist.send(torch.full((2,), float(rank)), 0)
        source = rank
    else:
        source = sum(dist.recv(anybody) for _ in range(dist.get_world_size() - 1))
    return [got, both, torch.tensor([float(source)])]


def hash_of(tensors: list[torch.Tensor]) -> str:
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(tensor.contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    wanted, steps = sys.argv[1].split(","), int(sys.argv[2])
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    for kind in wanted:
        print(f"{kind}: {calls() if kind == 'calls' else train(kind, steps)}", flush=True)
    dist.destroy_process_group()
