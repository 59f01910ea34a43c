"""Map metric names from training scripts to names of the metric registry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from receipt_cli.emit.step_printer import PRINTED_NAME, RESERVED_NAMES

_SPLIT = re.compile(r"(?P<split>train|training|val|valid|validation|eval|evaluation)[/_.\-](?P<rest>.+)", re.IGNORECASE)
_TRAINING = {
    "loss": "loss",
    "lr": "learning_rate",
    "learning_rate": "learning_rate",
    "grad_norm": "grad_norm",
    "gradient_norm": "grad_norm",
    "tokens_per_second": "tokens_per_s",
    "tokens_per_sec": "tokens_per_s",
}
_EVALUATION = {"loss": "val_loss", "perplexity": "val_perplexity", "ppl": "val_perplexity"}
_SHARES = frozenset({"acc", "accuracy"})
_AMBIGUOUS = {"perplexity": "ppl"}
"""Registry names that scripts also use for another quantity (of validation data) → the name printed instead."""


def by_split(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (training values, evaluation values), split by the first word of each name; a bare name is a training value.

    Unambiguous names get their registry name (``train/lr`` → ``learning_rate``, ``valid_loss`` → ``val_loss``); an accuracy only
    if it has a split and is between 0 and 1. Other names are kept.
    """
    training: dict[str, Any] = {}
    evaluation: dict[str, Any] = {}
    for name, value in values.items():
        found = _SPLIT.fullmatch(name)
        rest = (found["rest"] if found else name).lower()
        if found and not found["split"].lower().startswith("train"):
            known = "val_accuracy" if rest in _SHARES and _is_share(value) else _EVALUATION.get(rest)
            evaluation.setdefault(known or name, value)
        elif found and rest in _SHARES and _is_share(value):
            training.setdefault("train_accuracy", value)
        else:
            training.setdefault(_TRAINING.get(rest) or _AMBIGUOUS.get(name, name), value)
    return training, evaluation


def printable(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers in ``values`` under printable names; a tensor with one element is a number."""
    found = {}
    for name, value in values.items():
        number = _number(value)
        fitting = re.sub(r"[^A-Za-z0-9_./@%+:\-]+", "_", name)[:200]
        if number is not None and fitting.strip("_") and PRINTED_NAME.fullmatch(fitting) and fitting not in RESERVED_NAMES:
            found[fitting] = number
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, str, bytes)):
        return None
    if isinstance(value, int):
        return value
    try:
        return float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):  # a text, a picture, a tensor of several elements
        return None


def _is_share(value: Any) -> bool:
    number = _number(value)
    return number is not None and 0 <= number <= 1
