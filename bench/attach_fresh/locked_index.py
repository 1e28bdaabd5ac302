# launcher: torchrun 3
# truth: 1
"""A data loader worker of rank 1 waits for a lock on the index file that a forgotten process holds."""
import fcntl, os, subprocess, time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

MODE = os.environ["MODE"]


class Indexed(Dataset):
    def __init__(self, rank):
        self.rank, self.path = rank, f"index{rank}"

    def __len__(self):
        return 100_000

    def __getitem__(self, item):
        if self.rank == 1 and item == 60 and MODE == "stall":
            holder = open(self.path, "w")
            fcntl.flock(holder, fcntl.LOCK_EX)
            subprocess.Popen(["sleep", "3600"], pass_fds=[holder.fileno()])
            holder.close()
        if self.rank == 1 and item > 60 and MODE == "slow":
            time.sleep(0.4)
        with open(self.path, "a") as index:
            fcntl.flock(index, fcntl.LOCK_EX)
        return torch.full((4,), float(item))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    for number, batch in enumerate(DataLoader(Indexed(rank), batch_size=8, num_workers=2)):
        model(batch).mean().backward()
        if number == 5:
            open(f"ready{rank}", "w").close()
        time.sleep(0.05)


if __name__ == "__main__":
    main()
