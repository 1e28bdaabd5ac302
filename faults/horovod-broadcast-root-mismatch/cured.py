"""Every rank names the same root."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
torch.manual_seed(42)
print(f"rank {hvd.rank()} of {hvd.size()} ready", flush=True)

features = torch.randn(1536, 20)
targets = features @ torch.randn(20, 1) + 0.1 * torch.randn(1536, 1)
features, targets = features[hvd.rank() :: hvd.size()], targets[hvd.rank() :: hvd.size()]

model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
newest_checkpoint = 0
hvd.broadcast_parameters(model.state_dict(), root_rank=newest_checkpoint)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

for epoch in range(4):
    for step, (x, y) in enumerate(zip(features.split(32), targets.split(32))):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    mean = hvd.allreduce(loss.detach(), name="epoch_loss")
    if hvd.rank() == 0:
        print(f"epoch {epoch} loss {mean.item():.4f}", flush=True)
if hvd.rank() == 0:
    print("done", flush=True)
