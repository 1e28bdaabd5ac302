"""Second-order-ready loop: gradients are computed functionally and assigned before the step."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def sample_task(rank, step):
    g = torch.Generator().manual_seed(1000 * step + rank)
    amplitude = torch.rand(1, generator=g) * 4 + 0.1
    phase = torch.rand(1, generator=g) * 3.14
    x = torch.rand(24, 1, generator=g) * 10 - 5
    return x, amplitude * torch.sin(x + phase)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 1)))
    params = list(model.parameters())
    opt = torch.optim.Adam(params, lr=1e-2)
    for step in range(14):
        x, y = sample_task(rank, step)
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:
            print(f"rank {rank} step {step} loss {loss.item():.4f}", flush=True)
    print(f"rank {rank} params {torch.nn.utils.parameters_to_vector(params).double().norm().item():.10f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
