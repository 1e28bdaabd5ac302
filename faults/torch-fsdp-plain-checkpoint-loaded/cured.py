"""The same with set_model_state_dict, which distributes the plain tensors."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank == 0:
        torch.save(build().state_dict(), "pretrained.pt")
    dist.barrier()
    model = build()
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    options = StateDictOptions(full_state_dict=True)
    set_model_state_dict(model, torch.load("pretrained.pt"), options=options)
    print(f"[{rank}] pretrained weights loaded", flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, 21):
        x = torch.randn(16, 32)
        loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
