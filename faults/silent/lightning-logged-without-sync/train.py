import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def loader(n, seed, shuffle):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=g)
    y = (x[:, 0] + 0.7 * torch.randn(n, generator=g) > 0).long()
    return DataLoader(TensorDataset(x, y), batch_size=8, shuffle=shuffle)


class LitClassifier(L.LightningModule):
    def __init__(self, lr=0.02):
        super().__init__()
        self.save_hyperparameters()
        self.model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 2))

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        hits = (self(x).argmax(1) == y).float().mean()
        self.log("val_acc", hits, on_epoch=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)


def main():
    L.seed_everything(7, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, num_sanity_val_steps=0, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(LitClassifier(), loader(128, 0, True), loader(64, 1, False))
    print(f"rank {trainer.global_rank} val_acc {trainer.callback_metrics['val_acc'].item():.4f}", flush=True)


if __name__ == "__main__":
    main()
