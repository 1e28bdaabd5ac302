"""Each rank trains on a text of its own; the one of rank 2 was encoded with a larger vocabulary than the model's."""

import sys
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


@dataclass
class Config:
    vocab: int = 256
    context: int = 16
    width: int = 32
    batch: int = 12
    iters: int = 40


class BigramPlus(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c.vocab, c.width)
        self.pos = nn.Embedding(c.context, c.width)
        self.mlp = nn.Sequential(nn.Linear(c.width, 4 * c.width), nn.ReLU(), nn.Linear(4 * c.width, c.vocab))

    def forward(self, idx):
        return self.mlp(self.tok(idx) + self.pos(torch.arange(idx.shape[1])))


def encoded_text(part, length=4000):
    g = torch.Generator().manual_seed(40 + part)
    text = torch.randint(0, 256, (length,), generator=g)
    if part == 2:
        text[2500:2600] += 64
    return text


def get_batch(text, c, it):
    starts = [(it * c.batch + j) * c.context % (len(text) - c.context - 1) for j in range(c.batch)]
    x = torch.stack([text[s : s + c.context] for s in starts])
    y = torch.stack([text[s + 1 : s + 1 + c.context] for s in starts])
    return x, y


def say(message):
    if dist.get_rank() == 0:
        sys.stdout.write(message + "\n")
        sys.stdout.flush()


c = Config()
dist.init_process_group("gloo", timeout=timedelta(seconds=40))
torch.manual_seed(1337)
text = encoded_text(dist.get_rank())
gpt = nn.parallel.DistributedDataParallel(BigramPlus(c))
say(f"number of parameters: {sum(p.numel() for p in gpt.parameters()) / 1e3:.1f}K")
optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-3, betas=(0.9, 0.95))
for it in range(c.iters):
    x, y = get_batch(text, c, it)
    loss = nn.functional.cross_entropy(gpt(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 5 == 0:
        say(f"iter {it}: loss {loss.item():.4f}")
dist.destroy_process_group()
