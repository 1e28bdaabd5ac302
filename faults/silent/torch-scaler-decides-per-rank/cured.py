import torch
import torch.distributed as dist
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(12, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(torch.relu(self.inp(x)))


def allreduce_grads(model, clean=False):
    world = dist.get_world_size()
    for p in model.parameters():
        if clean:
            torch.nan_to_num_(p.grad, 0.0, 0.0, 0.0)
        dist.all_reduce(p.grad)
        p.grad /= world


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(21)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000)
    for it in range(10):
        g = torch.Generator().manual_seed(100 * it + rank)
        x = torch.randn(8, 12, generator=g)
        if it == 4 and rank == 1:
            x[0] = float("inf")  # a broken record
        target = x[:, :1].nan_to_num().clamp(-1, 1)
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(x), target)
        scaler.scale(loss).backward()
        allreduce_grads(model)
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        if rank == 0:
            print(f"it {it} loss {loss.item():.4f} scale {scaler.get_scale():.0f}", flush=True)
    print(f"rank {rank} scale {scaler.get_scale():.0f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
