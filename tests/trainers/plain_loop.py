"""A loop without any library: gradient descent on one number, printed as nanoGPT prints."""

import time

from ending import arguments, come_to_it

given = arguments()
weight = 4.0
print("number of parameters: 0.01M")
for step in range(given.steps):
    began = time.perf_counter()
    loss = weight * weight
    weight -= 0.02 * 2 * weight
    time.sleep(0.002)
    print(f"iter {step}: loss {loss:.4f}, time {(time.perf_counter() - began) * 1000:.2f}ms, mfu -100.00%", flush=True)
    come_to_it(given, step + 1)
