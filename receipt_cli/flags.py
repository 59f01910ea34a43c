"""Oddities of a phase's figures that can be named: a factor, a wrong peak, an impossible step. Never a threshold on speed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flag:
    """One oddity; see ``flags`` in ``schemas/receipt``. ``factor`` is what the printed figure must be multiplied by."""

    kind: str
    metric: str
    reported: float | None
    derived: float | None
    factor: float | None
    count: int | None
    detail: str
