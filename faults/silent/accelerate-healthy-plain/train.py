import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 7, generator=g)
    return TensorDataset(x, (x[:, 0] > 0).long())


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(0)
    model = nn.Sequential(nn.Linear(7, 14), nn.ReLU(), nn.Linear(14, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    train_loader = DataLoader(data(128, 0), batch_size=8, shuffle=True)
    eval_loader = DataLoader(data(27, 1), batch_size=8)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)
    for epoch in range(2):
        model.train()
        for x, y in train_loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        right = count = 0
        for x, y in eval_loader:
            with torch.no_grad():
                p = model(x).argmax(1)
            p, y = accelerator.gather_for_metrics((p, y))
            right, count = right + (p == y).sum().item(), count + len(y)
        accelerator.print(f"epoch {epoch} accuracy {right / count:.3f} of {count}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
