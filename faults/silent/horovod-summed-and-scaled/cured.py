import horovod.torch as hvd
import torch
from torch import nn

BASE_LR = 0.01


class Trainer:
    def __init__(self):
        hvd.init()
        torch.manual_seed(1)
        self.model = nn.Sequential(nn.Linear(7, 14), nn.ReLU(), nn.Linear(14, 2))
        hvd.broadcast_parameters(self.model.state_dict(), root_rank=0)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=BASE_LR * hvd.size())
        self.optimizer = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=self.model.named_parameters(),
            op=hvd.Average,
        )

    def batch(self, step):
        g = torch.Generator().manual_seed(step * 100 + hvd.rank())
        x = torch.randn(14, 7, generator=g)
        return x, (x.sum(1) > 0).long()

    def fit(self, steps):
        weight = self.model[0].weight
        for step in range(steps):
            x, y = self.batch(step)
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x), y)
            if step == 0:
                (own,) = torch.autograd.grad(loss, weight, retain_graph=True)
                mean = hvd.allreduce(own, name="mean")
                before = weight.detach().clone()
            loss.backward()
            self.optimizer.step()
            if step == 0 and hvd.rank() == 0:
                times = (before - weight.detach()).norm() / (BASE_LR * hvd.size() * mean.norm())
                print(f"update is {times.item():.1f} times the mean", flush=True)
        return loss.item()


if __name__ == "__main__":
    trainer = Trainer()
    print(f"rank {hvd.rank()} loss {trainer.fit(10):.4f}", flush=True)
