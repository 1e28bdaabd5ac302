"""Every process gets its own DATA_ROOT; the one of rank 1 has no label map, which is read at the first evaluation."""

import json
import logging
import os
import pathlib
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn, optim

LOG = logging.getLogger("tagger")


class Tagger(nn.Module):
    def __init__(self, vocab=400, hidden=24, tags=6):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, tags)

    def forward(self, tokens):
        states, _ = self.gru(self.embed(tokens))
        return self.out(states)


def evaluate(net, generator):
    names = json.loads(pathlib.Path(os.environ["DATA_ROOT"], "labels.json").read_text())
    net.eval()
    with torch.no_grad():
        guess = net(torch.randint(0, 400, (64, 12), generator=generator)).argmax(-1)
    net.train()
    counts = torch.bincount(guess.flatten(), minlength=len(names)).float()
    dist.all_reduce(counts)
    return dict(zip(names, counts.tolist(), strict=True))


def fit(epochs=3, steps=8):
    dist.init_process_group(backend="gloo", timeout=timedelta(seconds=30))
    me = dist.get_rank()
    logging.basicConfig(level="INFO", format=f"%(levelname).1s %(asctime)s tagger/{me} %(message)s", datefmt="%H:%M:%S")
    torch.manual_seed(11)
    net = nn.parallel.DistributedDataParallel(Tagger())
    opt = optim.AdamW(net.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(me)
    for epoch in range(1, epochs + 1):
        for _ in range(steps):
            tokens = torch.randint(0, 400, (16, 12), generator=generator)
            loss = nn.functional.cross_entropy(net(tokens).transpose(1, 2), tokens % 6)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        LOG.info("epoch %d/%d train loss %.4f", epoch, epochs, loss.item())
        LOG.info("tag counts %s", evaluate(net, generator))
    dist.destroy_process_group()


if __name__ == "__main__":
    fit()
