"""Rules of an ablation: curves have a value for each step, layers match the depth, the summary fits the window."""

from __future__ import annotations

from itertools import pairwise

from receipt_cli.documents.invariants.captured import HEADER_RULES
from receipt_cli.documents.invariants.rule import Broken, Document, Rule, check_column, check_lengths, layer_figures
from receipt_cli.problems import pointer

_DEPTH_KEYS = ("n_layer", "n_layers", "num_layers", "num_hidden_layers", "layer_count")
"""Keys of model configurations for the number of layers."""


def _baseline(document: Document) -> Broken:
    ablation = document["ablation"]
    if ablation["baseline"] == ablation["variant"]:
        yield "/ablation/baseline", "is the variant itself"
    elif ablation["baseline"] is None and ablation["changes"]:
        yield "/ablation/baseline", "is null though the variant changes something"


def _steps_ascend(document: Document) -> Broken:
    steps = document["steps"]
    for number, (before, after) in enumerate(pairwise(steps), start=1):
        if after <= before:
            yield f"/steps/{number}", f"is not after {before}"


def _curve_length(document: Document) -> Broken:
    curves = [(pointer("curves", name), curve) for name, curve in document["curves"].items()]
    layered = document["layer_curves"].items()
    curves += [(pointer("layer_curves", name, n), curve) for name, layers in layered for n, curve in layers.items()]
    return check_lengths(curves, len(document["steps"]))


def _layer_keys(document: Document) -> Broken:
    depth = document["model"]["layer_count"]
    for name, layers in document["layer_curves"].items():
        at = pointer("layer_curves", name)
        if len(layers) != depth:
            yield at, f"has {len(layers)} layers, the model has {depth}"
        elif set(layers) != {str(layer) for layer in range(int(depth))}:
            yield at, f"its layers are not 0 to {int(depth) - 1}"


def _depth(document: Document) -> Broken:
    depth, config = document["model"]["layer_count"], document["model"]["config"]
    for key in _DEPTH_KEYS:
        if key in config and config[key] != depth:
            yield pointer("model", "config", key), f"is not the layer_count, {depth}"


def _start(document: Document) -> int:
    """Return the index of the window's first step."""
    first = document["window"]["from_step"]
    return 0 if first is None else sum(step < first for step in document["steps"])


def _window(document: Document) -> Broken:
    held = len(document["steps"]) - _start(document)
    if document["window"]["step_count"] != held:
        yield "/window/step_count", f"is {document['window']['step_count']}, the window holds {held} steps"


def _names_agree(document: Document) -> Broken:
    for part in ("curves", "layer_curves"):
        for name in document[part]:
            if name not in document["summary"][part]:
                yield pointer("summary", part, name), "is missing though there is a curve"
        for name in document["summary"][part]:
            if name not in document[part]:
                yield pointer("summary", part, name), "has no curve"


def _figures(document: Document) -> Broken:
    start = _start(document)
    for name, figures in document["summary"]["curves"].items():
        if name in document["curves"]:
            yield from check_column(pointer("summary", "curves", name), figures, document["curves"][name][start:])


def _extremes(document: Document) -> Broken:
    start = _start(document)
    for name, stated in document["summary"]["layer_curves"].items():
        layers = document["layer_curves"].get(name, {})
        digits = len(str(len(layers)))  # ``layer_keys`` reports longer ones
        wanted = layer_figures((int(layer), curve[start:]) for layer, curve in layers.items() if len(layer) <= digits)
        for key, value in wanted.items():
            if stated[key] != value:
                yield pointer("summary", "layer_curves", name, key), f"is {stated[key]}, but {value} in the curves"


_CURVES = ("steps", "curves", "layer_curves", "window", "summary")
ABLATION_RULES: tuple[Rule, ...] = (
    *HEADER_RULES,
    Rule("baseline", ("ablation",), _baseline),
    Rule("steps_ascend", ("steps",), _steps_ascend),
    Rule("curve_length", ("steps", "curves", "layer_curves"), _curve_length),
    Rule("layer_keys", ("model", "layer_curves"), _layer_keys),
    Rule("depth_agrees", ("model",), _depth),
    Rule("window", ("steps", "window"), _window),
    Rule("names_agree", ("curves", "layer_curves", "summary"), _names_agree),
    Rule("figures_of_curves", _CURVES, _figures),
    Rule("extreme_layers", _CURVES, _extremes),
)
"""The rules of an ablation in order of check and report."""
