import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, get_worker_info


class Augmented(Dataset):
    """Signals with a random shift and gain."""

    def __init__(self, n=48):
        self.base = np.sin(np.linspace(0, 20, n * 16)).reshape(n, 16).astype("float32")
        self.rng = None  # made in the worker

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        if self.rng is None:
            self.rng = np.random.default_rng((torch.initial_seed(), dist.get_rank()))
        shift = self.rng.normal()
        x = np.roll(self.base[i], int(shift * 4)) * (1 + 0.1 * shift)
        return torch.from_numpy(x.astype("float32")), torch.tensor(self.base[i].mean()), shift


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    dataset = Augmented()
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler, num_workers=2)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    shifts = []
    sampler.set_epoch(0)
    for x, y, shift in loader:
        loss = (model(x).squeeze(1) - y).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        shifts += [round(s, 6) for s in shift.tolist()]
    every = [None] * world
    dist.all_gather_object(every, shifts)
    if rank == 0:
        together = sum(every, [])
        print(f"loss {loss.item():.4f}, different shifts {len(set(together))} of {len(together)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
