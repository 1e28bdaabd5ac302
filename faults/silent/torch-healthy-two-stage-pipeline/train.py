import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def stage_module(rank):
    torch.manual_seed(rank)
    if rank == 0:
        return nn.Sequential(nn.Linear(8, 24), nn.ReLU())
    return nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    stage = PipelineStage(stage_module(rank), rank, world, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    opt = torch.optim.SGD(stage.submod.parameters(), lr=0.05)
    for step in range(8):
        g = torch.Generator().manual_seed(step)
        x = torch.randn(16, 8, generator=g)
        y = x.sum(1, keepdim=True)
        opt.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=y, losses=losses)
        opt.step()
        if losses and step % 2 == 0:
            print(f"step {step} loss {sum(losses).item() / 4:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
