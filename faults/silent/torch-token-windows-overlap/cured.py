"""GPT-2 style pretraining on one token stream."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class DataLoaderLite:
    def __init__(self, B, T, process_rank, num_processes):
        self.B, self.T = B, T
        self.process_rank, self.num_processes = process_rank, num_processes
        g = torch.Generator().manual_seed(1337)
        self.tokens = torch.randint(0, 64, (6000,), generator=g)
        self.position = self.B * self.T * self.process_rank

    def next_batch(self):
        B, T = self.B, self.T
        buf = self.tokens[self.position : self.position + B * T + 1]
        x, y = buf[:-1].view(B, T), buf[1:].view(B, T)
        self.start = self.position
        self.position += self.B * self.T * self.num_processes
        if self.position + B * T * self.num_processes + 1 > len(self.tokens):
            self.position = self.B * self.T * self.process_rank
        return x, y


class Bigram(nn.Module):
    def __init__(self, vocab=64, dim=24):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 48), nn.GELU(), nn.Linear(48, dim))
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, idx, targets):
        h = self.wte(idx)
        logits = self.lm_head(h + self.mlp(h))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


dist.init_process_group("gloo")
ddp_rank, ddp_world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1337)
train_loader = DataLoaderLite(B=4, T=16, process_rank=ddp_rank, num_processes=ddp_world_size)
model = DDP(Bigram())
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
starts = []
for step in range(12):
    x, y = train_loader.next_batch()
    starts.append(train_loader.start)
    optimizer.zero_grad()
    loss = model(x, y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if ddp_rank == 0:
        print(f"step {step:4d} | loss {loss.item():.6f}", flush=True)
everyone = [None] * ddp_world_size
dist.all_gather_object(everyone, starts)
if ddp_rank == 0:
    both = set(everyone[0]) & set(everyone[1])
    print(f"windows read by two ranks: {len(both)}", flush=True)
dist.destroy_process_group()
