import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_model():
    return nn.Sequential(nn.Linear(9, 27), nn.SiLU(), nn.Linear(27, 9), nn.SiLU(), nn.Linear(9, 1))


def is_main_process():
    return dist.get_rank() == 0


def main(args):
    dist.init_process_group(backend="gloo")
    if is_main_process() and not os.path.exists(args.pretrained):
        torch.manual_seed(77)
        torch.save(make_model().state_dict(), args.pretrained)
    dist.barrier()

    torch.manual_seed(1)
    model = DDP(make_model())
    if is_main_process():
        print(f"=> loading {args.pretrained}", flush=True)
        model.module.load_state_dict(torch.load(args.pretrained, weights_only=True))
    dist.barrier()

    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    g = torch.Generator().manual_seed(4)
    x = torch.randn(128, 9, generator=g)
    data = TensorDataset(x, x.prod(1, keepdim=True))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
    total = sum(p.detach().double().sum() for p in model.parameters()).item()
    print(f"rank {dist.get_rank()} loss {loss.item():.4f} sum {total:.10f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--pretrained", default="pretrained.pt")
    p.add_argument("--epochs", type=int, default=2)
    main(p.parse_args())
