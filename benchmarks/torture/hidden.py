"""The run that is hidden in every hostile log, and what a receipt must say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

STEPS = 400
"""Step records of the run."""


def lines() -> list[bytes]:
    """Return the step lines, in the format of nanoGPT, each with its newline."""
    return [b"iter %d: loss %.4f, time %.2fms, mfu %.2f%%\n" % (n, _loss(n), _time(n), 40 + n % 7) for n in range(STEPS)]


def _loss(step: int) -> float:
    return round(4 - 3 * step / STEPS + (step * 37 % 11) / 100, 4)


def _time(step: int) -> float:
    return round(120 + step * 53 % 29, 2)


def wrong(receipt: Mapping[str, Any]) -> str | None:
    """Return what a receipt says wrongly of the run, or None."""
    summary = receipt["summary"]
    if summary is None:
        return "no summary"
    metrics, losses = summary["metrics"], [_loss(n) for n in range(STEPS)]
    told = (summary["steps"]["record_count"], summary["steps"]["first"], summary["steps"]["last"])
    if told != (STEPS, 0, STEPS - 1):
        return f"steps {told}"
    loss = metrics.get("loss") or {}
    found = tuple(loss.get(key) for key in ("record_count", "first", "last", "min", "max"))
    wanted = (STEPS, losses[0], losses[-1], min(losses), max(losses))
    return None if found == wanted else f"losses {found}, not {wanted}"


def among(noise: Iterator[bytes], every: int) -> Iterator[bytes]:
    """Yield the pieces of ``noise`` with a step line behind each ``every`` of them, as long as there are any; then the rest.

    A piece ends with a newline, or the step line begins one.
    """
    steps = iter(lines())
    for number, piece in enumerate(noise, 1):
        yield piece
        if number % every == 0 and (step := next(steps, None)) is not None:
            yield step
    yield from steps
