# launcher: accelerate 3
# truth: 2
"""Rank 2 has one batch fewer and waits at the end of the epoch, while the others are in its last backward pass."""
import os, time

import torch
from accelerate import Accelerator

MODE = os.environ["MODE"]
accelerator = Accelerator(cpu=True)
rank = accelerator.process_index
model = accelerator.prepare(torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.ReLU(), torch.nn.Linear(10, 1)))
batches = 10 - (rank == 2) if MODE == "stall" else 10


def train_epoch(epoch):
    for number in range(batches):
        loss = model(torch.randn(16, 10)).mean()
        accelerator.backward(loss)
        if MODE == "slow" and rank == 2:
            time.sleep(1)
        time.sleep(0.02)
        if number == 8:
            open(f"ready{rank}", "w").close()


for epoch in range(1_000_000):
    train_epoch(epoch)
    accelerator.wait_for_everyone()
    accelerator.print("epoch", epoch)
