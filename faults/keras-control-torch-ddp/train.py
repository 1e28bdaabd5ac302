"""A healthy Keras job on torch over two ranks; rank 0 writes the model and the other waits."""

import time

import torch
import torch.distributed as dist

import keras

dist.init_process_group("gloo")
rank = dist.get_rank()
print(f"[rank {rank}] keras {keras.__version__} on {keras.backend.backend()}", flush=True)
keras.utils.set_random_seed(7)
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
parallel = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
optimizer = torch.optim.Adam(parallel.parameters())
generator = torch.Generator().manual_seed(rank)
for epoch in range(3):
    for step in range(20):
        x = torch.randn(32, 16, generator=generator)
        loss = torch.nn.functional.cross_entropy(parallel(x), x[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"[rank {rank}] epoch {epoch} loss {loss.item():.4f}", flush=True)
    if rank == 0:
        model.save(f"epoch{epoch}.keras")
        time.sleep(4)
    dist.barrier()
dist.destroy_process_group()
