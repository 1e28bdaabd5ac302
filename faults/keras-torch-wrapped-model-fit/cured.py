"""The same with a loop of its own around the wrapped model."""

import os

import torch
import torch.distributed as dist

import keras

dist.init_process_group("gloo")
rank = dist.get_rank()
keras.utils.set_random_seed(7)
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
x = torch.randn(256, 16)
y = x[:, :4].argmax(1)
parallel = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.Adam(parallel.parameters())
for epoch in range(2):
    for xs, ys in zip(x.split(32), y.split(32)):
        loss = torch.nn.functional.cross_entropy(parallel(xs), ys)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"[{rank}] epoch {epoch} loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
