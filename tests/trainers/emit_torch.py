"""A loop in PyTorch with ``receipt_cli.emit``: a two-layer network on random data, evaluated and saved."""

import sys
import tempfile
from pathlib import Path

import torch
from protocol import recorded

from receipt_cli.emit import TorchLoop

torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
data = torch.randn(256, 32)
target = data.sum(dim=1, keepdim=True)
with (
    tempfile.TemporaryDirectory() as folder,
    recorded(TorchLoop(model, optimizer, planned_steps=40, tokens_per_step=256, every=2, seed=1), sys.argv[1:]) as loop,
):
    for step in range(1, 41):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), target)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        loop.step(loss, grad_norm=norm)
        if step % 20 == 0:
            with torch.no_grad():
                loop.eval(val_loss=torch.nn.functional.mse_loss(model(data[:64]), target[:64]))
            path = Path(folder, f"{step}.pt")
            torch.save(model.state_dict(), path)
            loop.checkpoint(path.name)
