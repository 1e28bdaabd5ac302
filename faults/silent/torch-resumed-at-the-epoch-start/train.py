import argparse
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Rows(Dataset):
    def __init__(self, n=192):
        g = torch.Generator().manual_seed(8)
        self.x = torch.randn(n, 7, generator=g)
        self.y = self.x.cos().sum(1, keepdim=True)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return i, self.x[i], self.y[i]


def main(args):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = Rows()
    sampler = DistributedSampler(data, seed=5)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(7, 14), nn.ReLU(), nn.Linear(14, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    step, epoch, seen = 0, 0, []
    if args.resume and os.path.exists("state.pt"):
        state = torch.load("state.pt", weights_only=True)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, epoch = state["step"], state["epoch"]
        with open(f"seen{rank}.json") as f:
            seen = json.load(f)
    skip = step % len(loader)
    while step < args.steps:
        sampler.set_epoch(epoch)
        for index, x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            seen += index.tolist()
            if step % 3 == 0:
                with open(f"seen{rank}.json", "w") as f:
                    json.dump(seen, f)
                if rank == 0:
                    torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "epoch": epoch}, "state.pt")
                dist.barrier()
            if step >= args.steps or step == args.stop_after:
                break
        epoch += 1
        if step == args.stop_after:
            break
    print(f"rank {rank} loss {loss.item():.4f} trained twice: {len(seen) - len(set(seen))}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--resume", action="store_true")
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--stop-after", type=int, default=-1)
    main(p.parse_args())
