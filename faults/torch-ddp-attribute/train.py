"""The model's own method is called on the wrapper, which has no such attribute."""

import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TEXT = "the quick brown fox jumps over the lazy dog and runs away from it . " * 40
VOCAB = sorted(set(TEXT))
BLOCK = 24


class CharModel(nn.Module):
    def __init__(self, vocab, width=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.head(hidden)


    def perplexity(self, loss):
        return float(torch.exp(torch.tensor(loss)))


def sample_batch(data, size, generator):
    starts = torch.randint(0, len(data) - BLOCK - 1, (size,), generator=generator)
    x = torch.stack([data[s : s + BLOCK] for s in starts])
    y = torch.stack([data[s + 1 : s + BLOCK + 1] for s in starts])
    return x, y


@torch.no_grad()
def evaluate(model, data, generator):
    x, y = sample_batch(data, 64, generator)
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()


def main():
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    torch.manual_seed(42)
    data = torch.tensor([VOCAB.index(c) for c in TEXT])
    model = DistributedDataParallel(CharModel(len(VOCAB)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(rank)
    checkpoints = Path("checkpoints")
    checkpoints.mkdir(exist_ok=True)
    began = time.time()
    for step in range(1, 41):
        x, y = sample_batch(data, 16, generator)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"[{rank}] step {step:3d} loss {loss.item():.3f} ({time.time() - began:.1f}s)", flush=True)
        if step % 20 == 0:
            if rank == 0:
                torch.save(model.module.state_dict(), checkpoints / f"step{step}.pt")
            dist.barrier()
    score = evaluate(model.module, data, generator)
    print(f"[{rank}] validation loss {score:.3f} perplexity {model.perplexity(score):.2f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
