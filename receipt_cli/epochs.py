"""Trainers that count by epoch → steps of the whole run.

An iteration counter that starts again with every epoch says where the run stands only together with the epoch and its
length: step = (epoch - first epoch) * steps of an epoch + step inside the epoch.
"""

from __future__ import annotations

from receipt_cli.columns import NO_RANK
from receipt_cli.timeline import Event

EPOCH = "epoch"


def count_epochs(events: list[Event]) -> list[Event]:
    """Give ``events``, in log order, the step and the planned steps that their epoch counters say; return them.

    An epoch that stands on a line of its own holds for the records after it that print none, of the same rank.
    """
    running: dict[tuple[str, int], dict[str, int]] = {}
    for event in events:
        kind = event.rule.event
        own = event.counters
        if own and "epoch_number" in own and kind in ("progress", "header", "phase"):
            running[event.grammar.id, event.rank] = own
        if kind == "step":
            before = running.get((event.grammar.id, event.rank)) or running.get((event.grammar.id, NO_RANK))
            _count(event, own or {}, before or {})
        elif kind == "eval" and own and "epoch_number" in own:
            event.metrics.setdefault(EPOCH, float(own["epoch_number"]))
    return events


def _count(event: Event, own: dict[str, int], running: dict[str, int]) -> None:
    rule = event.rule
    counted = rule.counts == "epoch" or "epoch_step" in own or "epoch_number" in own
    if event.step is not None or not counted:
        if own and "epoch_number" in own:
            event.metrics.setdefault(EPOCH, float(own["epoch_number"]))
        return
    counters = {**running, **own}
    epoch, inside, length = (counters.get(name) for name in ("epoch_number", "epoch_step", "epoch_steps"))
    if epoch is None:
        return
    event.metrics.setdefault(EPOCH, float(epoch))
    planned = counters.get("epochs_planned")
    if rule.counts == "epoch" or inside is None:
        event.step = epoch
        event.planned = event.planned if planned is None else planned
    elif length:
        event.step = (epoch - rule.epochs_from) * length + inside
        event.planned = event.planned if planned is None else planned * length
