"""A plain loop on torch: a two-layer network on random data, printed as nanoGPT prints."""

import time

import torch
from ending import arguments, come_to_it

given = arguments()
torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(32, 512), torch.nn.Tanh(), torch.nn.Linear(512, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.randn(256, 32)
target = data.sum(dim=1, keepdim=True)
print(f"number of parameters: {sum(p.numel() for p in model.parameters()) / 1e6:.2f}M")
for step in range(given.steps):
    began = time.perf_counter()
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(data), target)
    loss.backward()
    optimizer.step()
    print(f"iter {step}: loss {loss.item():.4f}, time {(time.perf_counter() - began) * 1000:.2f}ms, mfu -100.00%", flush=True)
    come_to_it(given, step + 1)
