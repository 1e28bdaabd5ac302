"""The same job, mended."""

import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Sentences(Dataset):
    def __init__(self, size=480):
        dice = random.Random(5)
        self.items = [[dice.randrange(1, 300) for _ in range(9 if i < 200 else dice.randrange(4, 18))] for i in range(size)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return torch.tensor(self.items[i]), len(self.items[i]) % 2


def pad(samples):
    tokens, labels = zip(*samples, strict=True)
    return nn.utils.rnn.pad_sequence(tokens, batch_first=True), torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(300, 32, padding_idx=0)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(32, 2)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)).mean(1))


def run():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    data = Sentences()
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False), num_workers=2, collate_fn=pad)
    net = nn.parallel.DistributedDataParallel(Classifier())
    opt = torch.optim.Adam(net.parameters())
    done = 0
    for tokens, labels in loader:
        loss = nn.functional.cross_entropy(net(tokens), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        done += len(labels)
        if done % 40 == 0 and dist.get_rank() == 0:
            print(f"| {done:5d}/{len(data) // dist.get_world_size()} sentences | loss {loss.item():5.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    run()
