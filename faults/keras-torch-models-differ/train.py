"""The width of the layer depends on the rank."""

import os
import signal

import keras
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
keras.utils.set_random_seed(3)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16 + 8 * rank, activation="relu"), keras.layers.Dense(1)])
wrapped = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.02)
x = torch.randn(160, 8)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16)
for epoch in range(3):
    for number, (features, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = ((wrapped(features) - labels) ** 2).mean()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {float(loss):.4f}", flush=True)
dist.destroy_process_group()
