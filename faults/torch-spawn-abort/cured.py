"""The same job, mended."""

import ctypes
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

BROKEN_RANK = None


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.actions, self.value = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, observations):
        h = self.body(observations)
        return torch.distributions.Categorical(logits=self.actions(h)), self.value(h)


class Simulator:
    """Stands for a simulator with a native core."""

    def __init__(self, seed):
        self.seed = seed
        self.core = ctypes.CDLL(None)
        self.ticks = 0

    def rollout(self, policy, length=128):
        self.ticks += 1
        if self.ticks == 3 and self.seed == BROKEN_RANK:
            self.core.abort()
        observations = torch.randn(length, 4)
        pi, value = policy(observations)
        actions = pi.sample()
        returns = (observations[:, 0] * (2 * actions - 1)).unsqueeze(1)
        return pi.log_prob(actions), value, returns


def actor(index, size, port):
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=size, rank=index)
    torch.manual_seed(index)
    policy = nn.parallel.DistributedDataParallel(Policy())
    optimizer = torch.optim.Adam(policy.parameters(), lr=7e-4)
    simulator = Simulator(index)
    for update in range(6):
        logp, value, returns = simulator.rollout(policy)
        advantage = (returns - value).detach().squeeze(1)
        loss = -(logp * advantage).mean() + 0.5 * (returns - value).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"actor-{index}: update {update} return {returns.mean():+.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(actor, (3, int(sys.argv[1])), nprocs=3)
