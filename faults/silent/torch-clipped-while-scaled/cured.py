import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(4)
    model = DDP(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
    x = torch.randn(160, 16)
    data = TensorDataset(x, x[:, :8].sum(1, keepdim=True))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    start = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                outputs = model(inputs)
            loss = nn.functional.mse_loss(outputs.float(), targets)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    moved = (nn.utils.parameters_to_vector(model.parameters()).detach() - start).norm().item()
    print(f"rank {rank} moved {moved / 10:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
