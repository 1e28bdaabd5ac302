import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    return TensorDataset(x, (x[:, :2].sum(1) > 0).long())


def evaluate(accelerator, model, loader):
    model.eval()
    right = count = 0
    for inputs, labels in loader:
        with torch.no_grad():
            logits = model(inputs)
        predictions, references = accelerator.gather_for_metrics((logits.argmax(1), labels))
        right += (predictions == references).sum().item()
        count += len(references)
    model.train()
    return right / count, count


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(3)
    train_loader = DataLoader(dataset(96, 0), batch_size=8, shuffle=True)
    eval_loader = DataLoader(dataset(27, 1), batch_size=8)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)
    for epoch in range(2):
        for inputs, labels in train_loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accuracy, count = evaluate(accelerator, model, eval_loader)
        accelerator.print(f"epoch {epoch}: {accuracy:.4f} accuracy over {count} samples")
    accelerator.end_training()


if __name__ == "__main__":
    main()
