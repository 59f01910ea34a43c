"""How a small trainer of these tests ends: well, by an exception, by a signal that somebody sends, or out of memory."""

import argparse
import signal
import time

ENDINGS = ("success", "exception", "sigterm", "memory")
_hoard: list[bytearray] = []


def arguments() -> argparse.Namespace:
    """Read the command line of a trainer: how it ends, at which step, and after how many it would be done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ending", choices=ENDINGS)
    parser.add_argument("--at", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    return parser.parse_args()


def come_to_it(given: argparse.Namespace, step: int) -> None:
    """After ``step`` steps: do what the ending asks for, if it is time."""
    if step < given.at:
        return
    if given.ending == "exception":
        raise RuntimeError(f"the optimizer has lost its way at step {step}")
    if given.ending == "sigterm" and step == given.at:
        caught, handler = [], signal.getsignal(signal.SIGTERM)
        if callable(handler):  # the trainer's: it goes on, and stops where it sees fit
            signal.signal(signal.SIGTERM, lambda *signalled: (caught.append(1), handler(*signalled)))
        print(f"ready at {step}", flush=True)
        signal.alarm(600)  # whoever should send a signal has died
        while not caught:
            time.sleep(0.01)
        signal.alarm(0)
    while given.ending == "memory":
        touched = len(_hoard) < 64  # a GiB that a cgroup counts; beyond that only addresses, which `ulimit -v` counts
        _hoard.append(bytearray(b"x") * (16 << 20) if touched else bytearray(1 << 30))
