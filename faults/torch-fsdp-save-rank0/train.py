"""The full state of a sharded model is gathered by all ranks together; here rank 0 does it alone."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(32) for _ in range(3)], nn.Linear(32, 4))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(rank)
    began = time.time()
    for step in range(20):
        x = torch.randn(8, 32)
        loss = nn.functional.cross_entropy(model(x), (x[:, :4]).argmax(1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 5 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} {time.time() - began:.1f}s", flush=True)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    if rank == 0:
        state = get_model_state_dict(model, options=options)
        torch.save(state, "model.pt")
        print(f"saved {len(state)} tensors", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
