"""The Trainer of Hugging Face on a tiny regression, with its progress bar and a record every second step."""

import tempfile

import torch
from ending import arguments, come_to_it
from transformers import Trainer, TrainerCallback, TrainingArguments

given = arguments()
torch.set_num_threads(1)


class Regression(torch.nn.Module):
    """A linear layer that returns its loss, as the Trainer wants it."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 1)

    def forward(self, x, labels):
        """Return loss and prediction."""
        predicted = self.layer(x)
        return {"loss": torch.nn.functional.mse_loss(predicted, labels), "logits": predicted}


class Ending(TrainerCallback):
    """Ends the training from within."""

    def on_step_begin(self, args, state, control, **_):
        """Come to the end before a step: all that the steps before have to say is printed."""
        come_to_it(given, state.global_step)


torch.manual_seed(1)
inputs = torch.randn(256, 32)
rows = [{"x": x, "labels": x.sum().reshape(1)} for x in inputs]
with tempfile.TemporaryDirectory() as folder:
    options = TrainingArguments(
        output_dir=folder,
        max_steps=given.steps,
        per_device_train_batch_size=8,
        logging_steps=2,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        seed=1,
        dataloader_pin_memory=False,
    )
    Trainer(model=Regression(), args=options, train_dataset=rows, callbacks=[Ending()]).train()
