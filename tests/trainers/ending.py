"""How a small trainer of these tests ends: well, by an exception, by a signal that somebody sends, or out of memory."""

import argparse
import signal

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
        print(f"ready at {step}", flush=True)
        signal.alarm(120)  # whoever should send a signal has died
        signal.pause()  # a trainer that catches it goes on, and stops where it sees fit
    while given.ending == "memory":
        touched = len(_hoard) < 64  # a GiB that a cgroup counts; beyond that only addresses, which `ulimit -v` counts
        _hoard.append(bytearray(b"x") * (16 << 20) if touched else bytearray(1 << 30))
