import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import Trainer, TrainingArguments


class Pairs(Dataset):
    def __init__(self, n=96):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(n, 8, generator=g)
        self.y = self.x[:, :1].abs()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        self.told = False

    def forward(self, x, labels):
        if not self.told:
            self.told = True
            print(f"rank {torch.distributed.get_rank()} first {x.sum().item():.6f}", flush=True)
        out = self.net(x)
        return {"loss": nn.functional.mse_loss(out, labels), "logits": out}


class MyTrainer(Trainer):
    """Keeps the loader for later statistics."""

    def get_train_dataloader(self):
        loader = DataLoader(self.train_dataset, batch_size=self.args.train_batch_size, shuffle=True, drop_last=True)
        self.loader = loader
        return loader


def main():
    args = TrainingArguments(
        output_dir="out", max_steps=6, per_device_train_batch_size=8, learning_rate=1e-3, use_cpu=True,
        report_to=[], save_strategy="no", logging_steps=3, disable_tqdm=True, seed=11,
    )
    torch.manual_seed(11)
    MyTrainer(model=Model(), args=args, train_dataset=Pairs()).train()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
