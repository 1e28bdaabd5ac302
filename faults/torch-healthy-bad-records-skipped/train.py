"""A healthy job: the data set logs records that it cannot decode, with a traceback, and takes the next one."""

import json
import logging

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

log = logging.getLogger("dataset")


class Records(Dataset):
    def __init__(self, n=240):
        self.lines = [json.dumps({"x": [i % 7, i % 5, i % 3], "y": i % 2}) for i in range(n)]
        for broken in (31, 150):
            self.lines[broken] = self.lines[broken][:12]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        try:
            record = json.loads(self.lines[i])
        except json.JSONDecodeError:
            log.exception("record %d cannot be decoded, taking the next one", i)
            return self[(i + 1) % len(self)]
        return torch.tensor(record["x"], dtype=torch.float), record["y"]


def main():
    dist.init_process_group("gloo")
    logging.basicConfig(level=logging.INFO, format=f"%(levelname)s rank{dist.get_rank()} %(name)s: %(message)s")
    data = Records()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=20, sampler=sampler)
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2)))
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        log.info("epoch %d loss %.4f", epoch, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
