"""Record one variant of a model, step by step and layer by layer, as an ``ablation/1.0`` document."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from receipt_cli.emit.document import (
    Document,
    NotConforming,
    Problem,
    attachment,
    check_document,
    figures,
    finite_or_none,
    header_block,
    producer_block,
    require,
    run_block,
    write_document,
)

SCHEMA_VERSION = "ablation/1.0"
DEPTH_KEYS = ("n_layer", "n_layers", "num_layers", "num_hidden_layers", "layer_count")
"""Configuration keys that hold the model's depth, in order of priority."""

Curve = list[float | None]


class AblationReceipt:
    """The curves of one variant: of the whole model, and of each layer.

    ``kind`` is the subject of the study, such as ``attention_sink``; ``baseline`` names the variant to compare with (None:
    this one is the baseline); ``changes`` are the settings in which this one differs. ``config`` identifies the architecture
    and is required; it must hold the depth (``DEPTH_KEYS``) unless ``layer_count`` is given. ``from_step`` is the first step
    of the window of comparison, None for all steps.

    ``steps``, ``curves`` and ``layer_curves`` may be set as a whole, or step by step with ``record``.
    """

    def __init__(
        self,
        *,
        kind: str,
        variant: str,
        architecture: str,
        config: Mapping[str, Any],
        baseline: str | None = None,
        changes: Mapping[str, str | float | bool | None] | None = None,
        layer_count: int | None = None,
        from_step: int | None = None,
        header: Mapping[str, Any] | None = None,
        run: Mapping[str, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.variant = variant
        self.baseline = baseline
        self.changes = dict(changes or {})
        self.architecture = architecture
        self.config = dict(config)
        stated = next((self.config[key] for key in DEPTH_KEYS if key in self.config), None)
        self.layer_count = stated if layer_count is None else layer_count
        self.from_step = from_step
        self.header = header_block(header)
        self.run = run_block(run or {})
        self.steps: list[int] = []
        self.curves: dict[str, Curve] = {}
        self.layer_curves: dict[str, dict[int, Curve]] = {}
        self.attachments: list[Document] = []

    def record(
        self,
        step: int,
        metrics: Mapping[str, float | None] | None = None,
        layers: Mapping[str, Sequence[float | None]] | None = None,
    ) -> None:
        """Add one step: one value per metric, and for each metric of ``layers`` one value per layer, from layer 0 on.

        A curve without a value at this or an earlier step has None there.
        """
        place = len(self.steps)
        self.steps.append(step)
        for name, value in (metrics or {}).items():
            _put(self.curves.setdefault(name, []), place, value)
        for name, values in (layers or {}).items():
            curves = self.layer_curves.setdefault(name, {})
            for layer, value in enumerate(values):
                _put(curves.setdefault(layer, []), place, value)
        for curve in [*self.curves.values(), *(c for curves in self.layer_curves.values() for c in curves.values())]:
            if len(curve) == place:
                curve.append(None)

    def attach(self, kind: str, uri: str) -> None:
        """Add a large artefact by its address, with digest and size for a local file."""
        self.attachments.append(attachment(kind, uri))

    def validate(self) -> list[Problem]:
        """Return the violations of the ablation contract, [] for a valid document.

        Among its rules: each curve is as long as the steps, the steps increase, the layers run from 0 to the depth, and the
        configuration is present and has the same depth.
        """
        twice = [
            Problem(f"/layer_curves/{name}", "a layer occurs twice, as a number and as a string")
            for name, layers in self.layer_curves.items()
            if len({str(layer) for layer in layers}) < len(layers)
        ]
        return twice + check_document(self.to_json(), "ablation")

    def to_json(self) -> Document:
        """Return the document, valid or not. Layers become strings; NaN and infinities become null."""
        first = self.from_step
        start = sum(_is_number(step) and step < first for step in self.steps) if first is not None and _is_number(first) else 0
        return {
            "schema_version": SCHEMA_VERSION,
            "run": dict(self.run),
            "header": self.header,
            "ablation": {
                "kind": self.kind,
                "variant": self.variant,
                "baseline": self.baseline,
                "changes": dict(self.changes),
            },
            "model": {"architecture": self.architecture, "layer_count": self.layer_count, "config": dict(self.config)},
            "steps": list(self.steps),
            "curves": {name: _finite(curve) for name, curve in self.curves.items()},
            "layer_curves": {
                name: {str(layer): _finite(curve) for layer, curve in layers.items()}
                for name, layers in self.layer_curves.items()
            },
            "window": {"from_step": self.from_step, "step_count": len(self.steps) - start},
            "summary": {
                "curves": {name: figures(_numbers(curve[start:])) for name, curve in self.curves.items()},
                "layer_curves": {name: _extremes(layers, start) for name, layers in self.layer_curves.items()},
            },
            "attachments": [dict(one) for one in self.attachments],
            "producer": producer_block(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> AblationReceipt:
        """Return the receipt of a valid ``document``; layers become numbers, and null becomes None.

        Raises ``NotConforming`` if the document is not valid.
        """
        require(dict(document), "ablation")
        ablation, model = document["ablation"], document["model"]
        receipt = cls(
            **ablation,
            architecture=model["architecture"],
            config=model["config"],
            layer_count=model["layer_count"],
            from_step=document["window"]["from_step"],
            header=document["header"],
            run=document["run"],
        )
        receipt.steps = list(document["steps"])
        receipt.curves = {name: list(curve) for name, curve in document["curves"].items()}
        receipt.layer_curves = {
            name: {int(layer): list(curve) for layer, curve in curves.items()}
            for name, curves in document["layer_curves"].items()
        }
        receipt.attachments = [dict(one) for one in document["attachments"]]
        return receipt

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the document to ``path`` atomically. Raises ``NotConforming`` and ``OutputError``."""
        problems = self.validate()
        if problems:
            raise NotConforming(problems)
        write_document(path, self.to_json())


def _put(curve: Curve, place: int, value: float | None) -> None:
    curve.extend([None] * (place - len(curve)))
    curve.append(value)


def _is_number(value: object) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and -sys.float_info.max <= value <= sys.float_info.max
    return isinstance(value, float)


def _finite(curve: Sequence[float | None]) -> list[float | None]:
    """Return a curve for JSON; values that are not numbers stay, for ``validate`` to report."""
    return [finite_or_none(value) if isinstance(value, float) else value for value in curve]


def _numbers(curve: Sequence[float | None]) -> list[float | None]:
    return [value if _is_number(value) else None for value in curve]


def _extremes(layers: Mapping[Any, Sequence[float | None]], start: int) -> Document:
    """Return the smallest and largest finite value of any layer in the window, of the first layer on a tie."""
    from receipt_cli.documents.invariants.rule import layer_figures

    numbered = ((layer, curve) for layer, curve in layers.items() if isinstance(layer, int))
    return layer_figures((layer, map(finite_or_none, _numbers(curve[start:]))) for layer, curve in numbered)
