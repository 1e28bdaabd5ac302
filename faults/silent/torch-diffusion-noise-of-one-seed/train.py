"""Denoising diffusion on two-dimensional points."""
import math
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

T = 50
betas = torch.linspace(1e-4, 0.05, T)
alphas_bar = torch.cumprod(1 - betas, 0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(T, 16)
        self.net = nn.Sequential(nn.Linear(2 + 16, 64), nn.SiLU(), nn.Linear(64, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], 1))


def training_losses(model, x0):
    t = torch.randint(0, T, (len(x0),))
    noise = torch.randn_like(x0)
    a = alphas_bar[t].unsqueeze(1)
    xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
    return (model(xt, t) - noise).square().mean(), noise


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(42)
    model = DDP(Denoiser())
    angle = torch.linspace(0, 2 * math.pi, 192)
    data = TensorDataset(torch.stack([angle.cos(), angle.sin()], 1))
    sampler = DistributedSampler(data, seed=42)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for (x0,) in loader:
            loss, noise = training_losses(model, x0)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"rank {rank} noise {noise.sum().item():.6f} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
