import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

LATENT = 4


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    netG = DDP(nn.Sequential(nn.Linear(LATENT, 16), nn.ReLU(), nn.Linear(16, 2)))
    netD = DDP(nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)), broadcast_buffers=False)
    optG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.999))
    data = TensorDataset(torch.randn(160, 2) * 0.3 + 1)
    torch.manual_seed(100 + rank)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for (real,) in loader:
            fake = netG(torch.randn(len(real), LATENT))
            optD.zero_grad()
            both = netD(torch.cat([real, fake.detach()]))
            target = torch.cat([torch.ones(len(real), 1), torch.zeros(len(real), 1)])
            lossD = F.binary_cross_entropy_with_logits(both, target)
            lossD.backward()
            optD.step()
            optG.zero_grad()
            for p in netD.parameters():
                p.requires_grad_(False)
            lossG = F.binary_cross_entropy_with_logits(netD.module(fake), torch.ones(len(real), 1))
            lossG.backward()
            for p in netD.parameters():
                p.requires_grad_(True)
            optG.step()
        if rank == 0:
            print(f"epoch {epoch} D {lossD.item():.3f} G {lossG.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
