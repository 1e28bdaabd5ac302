import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def linear_schedule(optimizer, num_training_steps):
    return LambdaLR(optimizer, lambda step: max(0.0, 1 - step / num_training_steps))


def main(epochs=2, lr=0.01):
    accelerator = Accelerator(cpu=True)
    set_seed(0)
    x = torch.randn(128, 5)
    loader = DataLoader(TensorDataset(x, x.max(1).indices), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    num_training_steps = epochs * len(loader) * accelerator.num_processes
    scheduler = accelerator.prepare(linear_schedule(optimizer, num_training_steps))
    updates, zero_at = 0, None
    for epoch in range(epochs):
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            updates += 1
            if scheduler.get_last_lr()[0] == 0 and zero_at is None:
                zero_at = updates
        accelerator.print(f"epoch {epoch} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")
    accelerator.print(f"lr reached zero after {zero_at} of {updates} updates")
    accelerator.end_training()


if __name__ == "__main__":
    main()
