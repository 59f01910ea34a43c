"""A Megatron step line among two hundred lines of everything else that ends up in the log of a large job."""

from __future__ import annotations

import random as plain
from collections.abc import Iterator

import numpy as np

from benchmarks.facts import Facts
from benchmarks.generators.megatron import step_lines

STEPS = 16
"""Step lines of one block."""
NOISE_LINES = 199
PARAGRAPHS = 300
"""Different stretches of noise; a log repeats them in any order."""
TRACEBACK = b"""Traceback (most recent call last):
  File "/opt/conda/lib/python3.10/site-packages/torch/utils/data/dataloader.py", line 1133, in _try_get_data
    data = self._data_queue.get(timeout=timeout)
  File "/opt/conda/lib/python3.10/queue.py", line 180, in get
    self.not_empty.wait(remaining)
  File "/workspace/megatron/data/blended.py", line %d, in __getitem__
    return self.datasets[dataset_id][sample_id]
OSError: [Errno 5] Input/output error: shard %d, sample is skipped
"""
_TEXT = b'abcdef0123456789 {}[]:,"/.'
_LONG = 16
"""Different very long lines, of 32 to 512 KB."""
HUGE = 16_000_000
"""Bytes of the longest line; an eighth of the log where that is less."""


def blocks(size: int, seed: int, facts: Facts | None) -> Iterator[bytes]:
    """Yield step lines, each behind its noise; one of 50 stands behind a redrawn bar, one of 50 ends in CR LF."""
    source, random = plain.Random(seed), np.random.default_rng(seed)
    paragraphs = [_paragraph(source) for _ in range(PARAGRAPHS)]
    longest = min(512_000, max(2_000, size // 64))
    long_lines = [_long_line(source, source.randrange(longest // 16, longest)) for _ in range(_LONG)]
    first, made, huge_done = 1, 0, False
    while made < size:
        pieces = []
        for line in step_lines(random, first, STEPS, facts):
            pieces.append(source.choice(paragraphs))
            step = line.encode()
            chance = source.random()
            if chance < 0.02:
                step = b" 45%|####5     | 45/99 [00:12<00:14,  3.71it/s]\r" + step
            elif chance < 0.04:
                step = step[:-1] + b"\r\n"
            elif chance < 0.08:
                pieces.append(source.choice(long_lines))
            pieces.append(step)
        if not huge_done and made * 3 >= size:
            huge_done = True
            pieces.append(_long_line(source, min(HUGE, size // 8)))
        block = b"".join(pieces)
        yield block
        made += len(block)
        first += STEPS


def _long_line(source: plain.Random, length: int) -> bytes:
    """Return a dump of about ``length`` bytes in one line."""
    piece = bytes(source.choices(_TEXT, k=4_000))
    return b"dumped state: " + piece * (length // len(piece) + 1) + b"\n"


def _paragraph(source: plain.Random) -> bytes:
    """Return whole lines of noise."""
    lines = [_noise(source) for _ in range(NOISE_LINES)]
    if source.random() < 0.1:
        lines[source.randrange(NOISE_LINES)] = TRACEBACK % (source.randrange(900), source.randrange(5_000))
    return b"".join(lines)


def _noise(source: plain.Random) -> bytes:
    """Return one line that says nothing about training; some look a little as if they did."""
    number = source.randrange
    chance = source.random()
    if chance < 0.5:
        return (
            f"node-{number(64):03d}:{number(9999)}:{number(9999)} [{number(8)}] NCCL INFO Channel {number(32):02d}/0 : "
            f"{number(64)}[{number(8)}] -> {number(64)}[{number(8)}] via P2P/IPC/read\n"
        ).encode()
    if chance < 0.6:
        return (
            f"node-{number(64):03d}:{number(9999)}:{number(9999)} [{number(8)}] NCCL INFO NET/IB : Using "
            f"[0]mlx5_{number(9)}:1/RoCE [RO]; OOB bond0:10.{number(255)}.{number(255)}.{number(255)}<0>\n"
        ).encode()
    if chance < 0.74:
        return (
            f"/usr/lib/python3/dist-packages/torch/utils/checkpoint.py:{number(999)}: UserWarning: None of the inputs have "
            "requires_grad=True. Gradients will be None\n"
        ).encode()
    if chance < 0.79:
        return b'  File "/opt/megatron/training.py", line %d, in forward_step\n' % number(2000)
    if chance < 0.87:
        values = b",".join(b"%d" % number(1000) for _ in range(20))
        return b'{"ts": %d, "level": "info", "msg": "heartbeat", "host": "node-%d", "vals": [%s]}\n' % (
            number(10**9),
            number(64),
            values,
        )
    if chance < 0.92:
        frames = (
            f"\rDownloading shards: {at:3d}%|{'#' * (at // 10):10s}| {at}/100 [00:{number(60):02d}<00:10, "
            f"{source.random() * 9:.2f}it/s]"
            for at in sorted(number(100) for _ in range(number(1, 5)))
        )
        return "".join(frames).encode() + b"\n"
    if chance < 0.95:
        return b"\x1b[32mINFO\x1b[0m worker %d ready, iteration 10 of the warm-up of its loader\r\n" % number(100)
    if chance < 0.96:
        return b"the loss: see iteration %d | elapsed time is in the table below\n" % number(10**6)
    if chance < 0.975:
        return b"bad \xff\xfe bytes %d\n" % number(1000)
    return b"W0301 12:00:%02d.000000 140 torch/distributed/run.py:779] \n" % number(60)
