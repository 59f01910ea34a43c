"""What a run cost: money, device-hours and energy, with what they were computed from."""

from __future__ import annotations

from collections.abc import Mapping

from receipt_cli.render.fields import mapping, real, text, whole
from receipt_cli.render.scale import count, duration, number
from receipt_cli.render.terminal.page import Page, Span

_KWH_J = 3.6e6


def write_cost(page: Page, document: Mapping[str, object]) -> None:
    """Add the cost of the run, if a price or the power of a device is known."""
    cost = mapping(document, "cost")
    if not cost:
        return
    hours, devices, wall = real(cost, "device_hours"), whole(cost, "device_count"), real(cost, "wall_time_s")
    amount, energy, power = real(cost, "amount"), real(cost, "energy_j"), real(cost, "power_w_per_device")
    figures: list[list[Span]] = []
    if amount is not None:
        figures.append([Span(f"{number(amount)} {page.say(text(cost, 'currency') or '')}".rstrip())])
    if hours is not None and devices is not None and wall is not None:
        many = f"{count(devices)} {'device' if devices == 1 else 'devices'}"
        figures.append([Span(f"{number(hours)} device-hours "), Span(f"({many}, {duration(wall)})", "dim")])
    if energy is not None:
        figures.append([Span(f"{number(energy / _KWH_J)} kWh")])
    notes = [[Span(f"price {page.say(source)}", "dim")] if (source := text(cost, "price_source")) else []]
    if power is not None:
        notes.append([Span(f"power {number(power)} W a device, {page.say(text(cost, 'power_source') or '')}", "dim")])
    if amount is None and energy is None:
        lacking = "wall time" if wall is None else "devices"
        figures.append([Span(f"not known: the {lacking} of the run", "dim")])
    page.gap()
    page.flow("cost", [*figures, *filter(None, notes)], indent=0, label_width=11)
