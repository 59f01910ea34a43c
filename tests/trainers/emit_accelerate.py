"""A loop on Accelerate with its tracker of ``receipt_cli.emit``: a tiny regression, logged as Accelerate's examples do."""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from protocol import recorded

from receipt_cli.emit import AccelerateTracker

torch.set_num_threads(1)
set_seed(1)
accelerator = Accelerator(cpu=True, log_with=recorded(AccelerateTracker(tokens_per_step=8), sys.argv[1:]))
accelerator.init_trackers("regression", config={"seed": 1, "max_train_steps": 40, "learning_rate": 0.01})
inputs = torch.randn(192, 32)
rows = torch.utils.data.TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
model = torch.nn.Linear(32, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)
model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
step = 0
for epoch in range(2):
    for x, y in batches:
        if step == 40:
            break
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 2 == 0:
            accelerator.log({"train_loss": loss.item(), "lr": 0.01, "grad_norm": norm.item(), "epoch": epoch}, step=step)
    with torch.no_grad():
        accelerator.log({"eval_loss": torch.nn.functional.mse_loss(model(inputs), rows.tensors[1]).item()}, step=step)
accelerator.end_training()
