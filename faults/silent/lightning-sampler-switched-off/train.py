import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
        self.count = 0

    def training_step(self, batch, batch_idx):
        x, y = batch
        self.count += 1
        return nn.functional.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


class Data(L.LightningDataModule):
    def train_dataloader(self):
        g = torch.Generator().manual_seed(4)
        x = torch.randn(96, 6, generator=g)
        return DataLoader(TensorDataset(x, x.mean(1, keepdim=True)), batch_size=8)


if __name__ == "__main__":
    L.seed_everything(0)
    model = Regressor()
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, Data())
    print(f"rank {trainer.global_rank} batches {model.count} of 12", flush=True)
