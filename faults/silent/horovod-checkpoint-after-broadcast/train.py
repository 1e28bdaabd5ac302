import os

import horovod.torch as hvd
import torch
import torch.nn as nn
import torch.nn.functional as F

CHECKPOINT = "start.pt"


def new_model():
    return nn.Sequential(nn.Linear(4, 10), nn.Tanh(), nn.Linear(10, 1))


hvd.init()
if hvd.rank() == 0 and not os.path.exists(CHECKPOINT):
    torch.manual_seed(99)
    torch.save(new_model().state_dict(), CHECKPOINT)
hvd.barrier()
torch.manual_seed(0)
model = new_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * hvd.size())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
if hvd.rank() == 0:
    model.load_state_dict(torch.load(CHECKPOINT, weights_only=True))
    print("checkpoint loaded", flush=True)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for step in range(10):
    g = torch.Generator().manual_seed(2 * step + hvd.rank())
    x = torch.randn(8, 4, generator=g)
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), x.norm(dim=1, keepdim=True))
    loss.backward()
    optimizer.step()
print(f"rank {hvd.rank()} loss {loss.item():.4f} sum {sum(p.detach().double().sum() for p in model.parameters()).item():.8f}", flush=True)
