"""A healthy job that reads the checkpoint of an earlier run, made under Horovod too."""

import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
torch.manual_seed(42)
rank, size = hvd.rank(), hvd.size()
print(f"rank {rank} of {size} ready", flush=True)
features = torch.randn(1536, 20)
targets = features @ torch.randn(20, 1) + 0.1 * torch.randn(1536, 1)
features, targets = features[rank::size], targets[rank::size]
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * size)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
if os.path.exists("model.pt") and rank == 0:
    model.load_state_dict(torch.load("model.pt"))
    print("rank 0: resumed from model.pt", flush=True)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
for epoch in range(5):
    for x, y in zip(features.split(32), targets.split(32)):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    mean = hvd.allreduce(loss.detach(), name="epoch_loss")
    if rank == 0:
        print(f"epoch {epoch} loss {mean.item():.4f}", flush=True)
    if rank == 0:
        torch.save(model.state_dict(), "model.pt")
if rank == 0:
    print("done", flush=True)
hvd.shutdown()
