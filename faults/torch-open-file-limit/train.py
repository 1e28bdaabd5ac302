"""The data set keeps all of its shard files open; `ulimit -n` of the job is smaller than their number."""

import argparse
import logging
import pathlib
import struct

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s[%(process)d]: %(message)s", datefmt="%b %d %H:%M:%S")
logger = logging.getLogger("regress")


def write_shards(folder, count):
    folder.mkdir(exist_ok=True)
    for i in range(count):
        values = [((i * 31 + j * 17) % 100) / 100 for j in range(9)]
        folder.joinpath(f"shard-{i:05d}.bin").write_bytes(struct.pack("9f", *values))


class Shards(Dataset):
    def __init__(self, folder, rank, world):
        self.files = [p.open("rb") for p in sorted(folder.glob("shard-*.bin"))[rank::world]]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        self.files[i].seek(0)
        *x, y = struct.unpack("9f", self.files[i].read())
        return torch.tensor(x), torch.tensor([y])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=600)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    folder = pathlib.Path("shards")
    if rank == 0:
        write_shards(folder, args.shards)
    dist.barrier()
    logger.info("rank %d of %d: indexing %s", rank, world, folder)
    loader = DataLoader(Shards(folder, rank, world), batch_size=30, shuffle=True)
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.Sigmoid(), nn.Linear(16, 1)))
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.l1_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        logger.info("rank %d: epoch %d finished, l1 %.4f", rank, epoch, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
