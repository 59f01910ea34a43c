"""A module of Lightning on a tiny regression, with its progress bar."""

import warnings

import lightning
import torch
from ending import arguments, come_to_it

given = arguments()
torch.set_num_threads(1)
warnings.filterwarnings("ignore")


class Regression(lightning.LightningModule):
    """A linear layer with its loss on the bar."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 1)

    def training_step(self, batch, _):
        """Return the loss of a batch."""
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layer(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def on_train_batch_end(self, *_):
        """Come to the end once a step is done."""
        come_to_it(given, self.global_step)

    def configure_optimizers(self):
        """Return the optimizer."""
        return torch.optim.SGD(self.parameters(), lr=0.01)


lightning.seed_everything(1)
inputs = torch.randn(256, 32)
rows = torch.utils.data.TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
trainer = lightning.Trainer(
    max_steps=given.steps,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_model_summary=False,
    callbacks=[lightning.pytorch.callbacks.TQDMProgressBar(refresh_rate=1)],
)
trainer.fit(Regression(), torch.utils.data.DataLoader(rows, batch_size=8))
