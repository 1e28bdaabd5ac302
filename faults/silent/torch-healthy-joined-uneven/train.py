import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP


def batches(rank):
    g = torch.Generator().manual_seed(rank)
    for _ in range(8 + 2 * rank):
        x = torch.randn(6, 4, generator=g)
        yield x, x.sum(1, keepdim=True)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    done = 0
    with Join([model]):
        for x, y in batches(rank):
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            done += 1
    # ranks that ended early have not made the last steps
    for p in model.parameters():
        dist.broadcast(p.data, src=dist.get_world_size() - 1)
    print(f"rank {rank} {done} steps", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
