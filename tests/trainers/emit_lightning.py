"""A module of Lightning with its callback of ``receipt_cli.emit``: a tiny regression, validated and saved."""

import sys
import tempfile
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from protocol import recorded

from receipt_cli.emit import LightningCallback

torch.set_num_threads(1)
warnings.filterwarnings("ignore")


class Regression(lightning.LightningModule):
    """A linear layer."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 1)

    def training_step(self, batch, _):
        """Return the loss of a batch."""
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layer(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        """Log the loss of a batch."""
        x, y = batch
        self.log("val_loss", torch.nn.functional.mse_loss(self.layer(x), y))

    def configure_optimizers(self):
        """Return the optimizer and a schedule by step."""
        optimizer = torch.optim.SGD(self.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 40)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


lightning.seed_everything(1)
inputs = torch.randn(192, 32)
rows = torch.utils.data.TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
train, held = torch.utils.data.random_split(rows, [160, 32])
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        max_epochs=4,
        accumulate_grad_batches=2,
        gradient_clip_val=1.0,
        accelerator="cpu",
        logger=False,
        enable_model_summary=False,
        callbacks=[recorded(LightningCallback(every=5), sys.argv[1:]), ModelCheckpoint(folder, every_n_train_steps=20)],
    )
    batches = torch.utils.data.DataLoader(train, batch_size=8, shuffle=True)
    trainer.fit(Regression(), batches, torch.utils.data.DataLoader(held, batch_size=8))
