"""Fit a small regressor with Lightning."""

import argparse

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(L.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self.net(x), y), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def table(rows, columns):
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows))
    return TensorDataset(x, x[:, :6].sum(1, keepdim=True) - x[:, 6:].pow(2).sum(1, keepdim=True))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--accelerator", default="cpu")
    ap.add_argument("--monitor", default="val_loss")
    ap.add_argument("--val-columns", type=int, default=12)
    args = ap.parse_args()
    L.seed_everything(7)
    trainer = L.Trainer(
        max_epochs=args.epochs, accelerator=args.accelerator, devices=1, log_every_n_steps=10,
        callbacks=[EarlyStopping(args.monitor, patience=3), ModelCheckpoint(monitor=args.monitor)],
        num_sanity_val_steps=0, logger=L.pytorch.loggers.CSVLogger("logs"), enable_progress_bar=True,
    )  # fmt: skip
    train, val = table(2000, 12), table(400, args.val_columns)
    trainer.fit(Regressor(1e-2), DataLoader(train, 32), DataLoader(val, 32))


if __name__ == "__main__":
    main()
