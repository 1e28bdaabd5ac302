# launcher: torchrun 4
# truth: 1
"""Rank 1 reduces its metrics before its gradients; the others do it the other way round, in groups of the same members."""
import os, time

import torch
import torch.distributed as dist

MODE = os.environ["MODE"]


class Trainer:
    def __init__(self):
        self.rank = dist.get_rank()
        self.gradients = dist.new_group([0, 1, 2, 3])
        self.metrics = dist.new_group([0, 1, 2, 3])

    def sync_gradients(self):
        dist.all_reduce(torch.ones(32), group=self.gradients)

    def sync_metrics(self):
        dist.all_reduce(torch.ones(2), group=self.metrics)

    def step(self, number):
        if MODE == "stall" and self.rank == 1 and number == 6:
            self.sync_metrics()
            self.sync_gradients()
            return
        if MODE == "slow" and self.rank == 1:
            time.sleep(1.1)
        self.sync_gradients()
        self.sync_metrics()

    def fit(self):
        for number in range(1_000_000):
            if number == 6:
                open(f"ready{self.rank}", "w").close()
            self.step(number)
            time.sleep(0.02)


dist.init_process_group("gloo")
Trainer().fit()
