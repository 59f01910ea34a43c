"""Ten scripts that print no time: what each does, for how long, and what it prints then.

A script is a list of pieces, which ``play`` performs by the real clock; ``tests/cli/test_times.py`` plays the same pieces by
a fake one. ``python -m benchmarks.timeless NAME TRUTH`` is the script itself; it adds to the file ``TRUTH`` how long, by
its own clock, the work of each kind took.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple


class Piece(NamedTuple):
    """Some work: its ``kind`` (``step``, or a class of lost time), its seconds, and what is printed after it."""

    kind: str
    seconds: float
    text: str = ""


KILL = "KILL"
"""Text that is not printed: the script kills itself."""


def _loss(step: int) -> str:
    return f"{0.5 + 3 / (1 + 0.1 * step):.4f}"


def _steps(first: int, last: int, seconds: float, form: Callable[[int], str]) -> Iterator[Piece]:
    for step in range(first, last + 1):
        yield Piece("step", seconds * (1 + 0.01 * (7 * step % 11 - 5)), form(step))


def _line(step: int) -> str:
    return f"step {step} loss {_loss(step)}\n"


def plain() -> Iterator[Piece]:
    """Print a line a step."""
    yield Piece("initialization", 0.6, "model has 124000000 parameters\n")
    yield from _steps(1, 60, 0.15, _line)


def bar() -> Iterator[Piece]:
    """Redraw a bar as tqdm does without its times."""
    yield Piece("initialization", 0.5)
    yield from _steps(1, 60, 0.15, lambda n: f"\r{n * 100 // 60:3}%|{'#' * (n // 6):10}| {n}/60, loss={_loss(n)}")
    yield Piece("idle", 0.0, "\n")


def backspaces() -> Iterator[Piece]:
    """Redraw a bar as Keras did in its first version: by backspaces and a carriage return."""
    yield Piece("initialization", 0.5)
    for epoch in range(3):

        def form(n: int, epoch: int = epoch) -> str:
            drawn = f"Epoch {epoch + 1}/3 step {n:2}/20 [{'=' * n}{'.' * (20 - n)}] loss: {_loss(20 * epoch + n)}"
            return ("\b" * len(drawn) + "\r" if n > 1 else "") + drawn + ("\n" if n == 20 else "")

        yield from _steps(1, 20, 0.15, form)


def ranks() -> Iterator[Piece]:
    """Print a line a step from two ranks, the second a little later."""
    yield Piece("initialization", 0.6)
    for piece in _steps(1, 60, 0.15, lambda step: f"[rank0]: {_line(step)}"):
        yield piece
        yield Piece("step", 0.0, piece.text.replace("rank0", "rank1"))


def stalls() -> Iterator[Piece]:
    """Stand still for five seconds between two steps."""
    yield Piece("initialization", 0.5)
    yield from _steps(1, 30, 0.15, _line)
    yield Piece("idle", 5.0)
    yield from _steps(31, 60, 0.15, _line)


def checkpoints() -> Iterator[Piece]:
    """Evaluate every ten steps, and save a checkpoint every twenty."""
    yield Piece("initialization", 0.5)
    for first in range(1, 61, 10):
        yield from _steps(first, first + 9, 0.15, _line)
        yield Piece("eval", 0.6, f"step {first + 9} val_loss {_loss(first + 7)}\n")
        if first % 20 == 11:
            yield Piece("checkpoint", 1.0, f"Saved checkpoint to out/step-{first + 9}.pt\n")


def killed() -> Iterator[Piece]:
    """Die by SIGKILL in the middle of a step, after a checkpoint: a line says that it begins, and none that it is done."""
    yield Piece("initialization", 0.5)
    yield from _steps(1, 20, 0.15, _line)
    yield Piece("idle", 0.0, "Saving checkpoint to out/step-20.pt\n")
    yield Piece("checkpoint", 0.8)
    yield from _steps(21, 40, 0.15, _line)
    yield Piece("idle", 0.1, KILL)


def requeued() -> Iterator[Piece]:
    """Go on after the checkpoint of the killed script."""
    yield Piece("initialization", 0.5, "Resuming from checkpoint out/step-20.pt\n")
    yield from _steps(21, 60, 0.15, _line)


def fast() -> Iterator[Piece]:
    """Print ten thousand lines a second."""
    yield Piece("initialization", 0.5)
    yield from _steps(1, 60_000, 0.0001, _line)


SCRIPTS = {script.__name__: script for script in (plain, bar, backspaces, ranks, stalls, checkpoints, killed, requeued, fast)}
BUFFERED = r"""
#include <stdio.h>
#include <time.h>
int main(int count, char **words) {
    struct timespec step = {0, 20000000}, begun, ended;
    nanosleep(&(struct timespec){0, 500000000}, NULL);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (int n = 1; n <= 1500; n++) {
        nanosleep(&step, NULL);
        printf("step %d loss %.4f, and some more words to fill the line with\n", n, 0.5 + 3 / (1 + 0.1 * n));
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    FILE *truth = fopen(words[1], "w");
    double seconds = ended.tv_sec - begun.tv_sec + (ended.tv_nsec - begun.tv_nsec) / 1e9;
    fprintf(truth, "{\"kinds\": {\"initialization\": 0.5, \"step\": %f}, \"steps\": [%f]}\n", seconds, seconds / 1500);
    fclose(truth);
    return 0;
}
"""
"""A C program whose output the C library holds back in blocks of 4 KiB, as it does for every pipe."""


def play(pieces: Iterator[Piece], truth: Path) -> None:
    """Perform a script, and note in ``truth`` what took how long."""
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    kinds: defaultdict[str, float] = defaultdict(float)
    kinds["initialization"] = began - ticks / os.sysconf("SC_CLK_TCK")
    steps: list[float] = []
    last = due = time.monotonic()
    for piece in pieces:
        due += piece.seconds
        if (wait := due - time.monotonic()) > 0.0005:
            time.sleep(wait)
        now = time.monotonic()
        kinds[piece.kind] += now - last
        if piece.kind == "step" and piece.seconds:
            steps.append(now - last)
        last = now
        if piece.text == KILL:
            _note(truth, kinds, steps)
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(1, piece.text.encode())
    _note(truth, kinds, steps)


def _note(truth: Path, kinds: dict[str, float], steps: list[float]) -> None:
    with truth.open("a") as file:
        file.write(json.dumps({"kinds": kinds, "steps": steps}) + "\n")


if __name__ == "__main__":
    play(SCRIPTS[sys.argv[1]](), Path(sys.argv[2]))
