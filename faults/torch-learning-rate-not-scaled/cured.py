"""The same with the learning rate scaled by the number of ranks."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

EPOCHS, BATCH, BASE_RATE = 4, 32, 0.01


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    data = torch.Generator().manual_seed(11)
    x = torch.randn(4096, 20, generator=data)
    y = (x @ torch.randn(20, 5, generator=data)).argmax(1)
    test_x, test_y = x[3584:], y[3584:]
    x, y = x[:3584][rank::world], y[:3584][rank::world]
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(20, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=BASE_RATE * world)
    if rank == 0:
        print(f"world size {world}, global batch {BATCH * world}, learning rate {optimizer.param_groups[0]['lr']}", flush=True)
    for epoch in range(EPOCHS):
        for xs, ys in zip(x.split(BATCH), y.split(BATCH)):
            loss = nn.functional.cross_entropy(model(xs), ys)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = (model.module(test_x).argmax(1) == test_y).float().mean().item()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.3f}", flush=True)
    if rank == 0 and accuracy < 0.6:
        print(f"accuracy {accuracy:.3f} after {EPOCHS} epochs; on one process it was 0.80 with the same settings", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
