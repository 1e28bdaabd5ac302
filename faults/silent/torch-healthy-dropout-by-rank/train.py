"""Seeds: one for the weights, another for each rank's dropout and input noise."""
import argparse
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=5)
parser.add_argument("--noise", type=float, default=0.05)


def main(args):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    model = DDP(nn.Sequential(nn.Linear(9, 40), nn.ReLU(), nn.Dropout(0.2), nn.Linear(40, 1)))
    x = torch.randn(120, 9)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    torch.manual_seed(args.seed + 1 + rank)
    sampler = DistributedSampler(data, seed=args.seed)
    loader = DataLoader(data, batch_size=10, sampler=sampler)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for xb, yb in loader:
            xb = xb + args.noise * torch.randn_like(xb)
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
    if rank == 0:
        print(f"loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(parser.parse_args())
