import torch
import torch.distributed as dist
import torch.nn as nn

MAX_NORM = 0.5


def average(model):
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
        p.grad.mul_(1.0 / dist.get_world_size())


def sequence(step, rank):
    g = torch.Generator().manual_seed(step * 31 + rank)
    x = torch.randn(6, 9, 4, generator=g) * (1 + 3 * rank)
    return x, x.cumsum(1).tanh()


class LSTMTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 16, batch_first=True)
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(2)
    model = LSTMTagger()
    for t in model.state_dict().values():
        dist.broadcast(t, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for step in range(10):
        x, y = sequence(step, rank)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        (loss * 10).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        average(model)
        optimizer.step()
    print(f"rank {rank} clipped from {norm.item():.6f} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
