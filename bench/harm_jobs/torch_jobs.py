"""Healthy PyTorch jobs: `torch_jobs.py CASE`. Lines that begin with `=` must be the same by any launcher."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def model(width=8):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(width, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def batches(count, rows=16):
    chance = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(count):
        x = torch.randn(rows, 8, generator=chance)
        yield x, x.sum(1, keepdim=True)


def train(net, data, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(net.parameters(), lr=0.05)
    for number, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        if number % 10 == 0:
            print(f"= step {number} loss {float(loss):.6f}")


def ddp():
    train(DistributedDataParallel(model()), batches(40))


def accumulation():
    net = DistributedDataParallel(model())
    optimizer = torch.optim.Adam(net.parameters())
    for number, (x, y) in enumerate(batches(20)):
        if number % 4 != 3:
            with net.no_sync():
                ((net(x) - y) ** 2).mean().backward()
            continue
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"= {number} {float(loss):.6f}")


def fsdp():
    from torch.distributed.fsdp import fully_shard

    net = model()
    fully_shard(net)
    train(net, batches(20), torch.optim.Adam(net.parameters(), lr=0.01))


def join():
    from torch.distributed.algorithms.join import Join

    net = DistributedDataParallel(model())
    with Join([net]):
        train(net, batches(10 + 5 * dist.get_rank()))


def loaders():
    data = torch.utils.data.TensorDataset(torch.arange(64.0).reshape(8, 8).repeat(8, 1) / 64, torch.ones(64, 1))
    sampler = torch.utils.data.DistributedSampler(data, seed=3)
    loader = torch.utils.data.DataLoader(data, 4, sampler=sampler, num_workers=2, persistent_workers=True)
    net = DistributedDataParallel(model())
    for epoch in range(2):
        sampler.set_epoch(epoch)
        train(net, loader)


def collectives():
    mine, size = torch.full((4,), float(dist.get_rank() + 1)), dist.get_world_size()
    gathered = [torch.empty(4) for _ in range(size)]
    dist.all_gather(gathered, mine)
    dist.all_reduce(mine)
    dist.broadcast(mine, 0)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": dist.get_rank()})
    print("=", mine.tolist(), [part.tolist() for part in gathered], objects)


def pipeline():
    rank, size = dist.get_rank(), dist.get_world_size()
    for number in range(10):
        value = torch.full((4,), float(number))
        if rank:
            dist.recv(value, rank - 1)
        value *= 2
        if rank < size - 1:
            dist.send(value, rank + 1)
    print("=", value.tolist())


def groups():
    halves = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
    value = torch.ones(2)
    dist.all_reduce(value, group=halves[dist.get_rank()])
    work = dist.all_reduce(value, async_op=True)
    work.wait()
    print("=", value.tolist())


def children():
    said = subprocess.run(
        [sys.executable, "-c", "import os; print('child', os.environ['RANK'])"], capture_output=True, text=True
    )
    print("=", said.stdout.strip(), said.returncode, repr(said.stderr))
    dist.barrier()


def surroundings():
    handlers = [
        str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    ]
    print("=", sys.argv, Path.cwd() == Path(sys.argv[0]).resolve().parent, os.umask(0o22), handlers)
    print(
        "=", resource.getrlimit(resource.RLIMIT_NOFILE), sys.excepthook is sys.__excepthook__, torch.get_num_threads()
    )
    print("=", sorted(name for name in os.environ if name.startswith(("PYTHON", "TORCH_"))))
    print("=", sys.flags)


def waits():
    for number in range(3):
        if dist.get_rank() == number % 2:
            time.sleep(1.5)
        dist.barrier()
    print("= passed")


def fails():
    dist.barrier()
    print("= leaving")
    sys.exit(3)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    globals()[sys.argv[1]]()
    dist.destroy_process_group()
