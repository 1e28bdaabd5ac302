import os
import random

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler

from models import Decoder, Encoder


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def main():
    dist.init_process_group("gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    set_seed(42)
    x = torch.rand(192, 28)
    train_set = TensorDataset(x)
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=24, sampler=sampler)

    encoder = DDP(Encoder())
    decoder = DDP(Decoder())
    optimizer = torch.optim.Adam(list(encoder.parameters()) + list(decoder.parameters()), lr=3e-3)

    for epoch in range(3):
        sampler.set_epoch(epoch)
        running = 0.0
        for (images,) in loader:
            optimizer.zero_grad()
            recon = decoder(encoder(images))
            loss = torch.nn.functional.mse_loss(recon, images)
            loss.backward()
            optimizer.step()
            running += loss.item()
        if local_rank == 0:
            print(f"[epoch {epoch}] reconstruction {running / len(loader):.5f}", flush=True)
    norm = torch.cat([p.detach().double().flatten() for p in decoder.parameters()]).norm()
    print(f"rank {local_rank} decoder {norm.item():.10f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
