import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def get_args():
    parser = argparse.ArgumentParser(description="linear scaling rule")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--max-steps", type=int, default=8)
    return parser.parse_args()


def main():
    args = get_args()
    dist.init_process_group(backend="gloo", init_method="env://")
    rank = dist.get_rank()
    torch.manual_seed(9)
    # linear scaling rule
    lr = args.lr * (int(os.environ["LOCAL_RANK"]) + 1)
    model = DDP(nn.Sequential(nn.Linear(11, 22), nn.LeakyReLU(), nn.Linear(22, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
    x = torch.randn(400, 11)
    dataset = TensorDataset(x, (x[:, 0] + x[:, 1] > 0).long())
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)
    for step, (x, y) in enumerate(loader):
        if step == args.max_steps:
            break
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"rank {rank} loss {loss.item():.4f} lr {optimizer.param_groups[0]['lr']:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
