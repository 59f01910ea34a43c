"""The metric registry: what ships, and each rule that a registry file can break."""

import json
from collections.abc import Mapping
from typing import Any, get_args

import pytest

from receipt_cli.definitions.metrics import Alias, Better, Klass, Unit, Window, load_registry, parse_registry
from receipt_cli.errors import DataError

LOSS: dict[str, Any] = {
    "id": 1,
    "name": "loss",
    "unit": "1",
    "class": "curve",
    "window": "all",
    "better": "lower",
    "description": "Training loss.",
    "aliases": [{"spelling": "lm loss", "trainer": "a"}],
}
TIME: dict[str, Any] = {
    "id": 40,
    "name": "step_time_s",
    "unit": "s",
    "class": "rate",
    "window": "steady",
    "better": "lower",
    "description": "Wall time of one step.",
    "aliases": [{"spelling": "dt", "trainer": "a", "printed_in": "ms"}],
}


def registry_text(*metrics: Mapping[str, Any], **top: Any) -> bytes:
    """JSON is YAML, and has no anchors."""
    return json.dumps({"registry": "metrics", "version": 1, "metrics": list(metrics), **top}).encode()


def changed(metric: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    return {**metric, **values}


def without(metric: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in metric.items() if name != key}


def test_metrics_come_in_id_order_with_their_aliases():
    registry = parse_registry(registry_text(TIME, LOSS), "r.yaml")
    assert [metric.id for metric in registry.metrics] == [1, 40]
    assert registry.by_name["step_time_s"].aliases == (Alias("dt", "a", "ms"),)
    assert registry.by_alias == {"dt": "step_time_s", "lm loss": "loss", "loss": "loss", "step_time_s": "step_time_s"}
    assert registry.version == 1


def test_spelling_of_two_metrics_names_neither():
    both = [{"spelling": "Norm", "trainer": "a"}], [{"spelling": "norm", "trainer": "b"}]
    registry = parse_registry(registry_text(changed(LOSS, aliases=both[0]), changed(TIME, aliases=both[1])), "r.yaml")
    assert "norm" not in registry.by_alias
    assert registry.by_alias["loss"] == "loss"


BROKEN = [
    ("no_metrics", b"registry: metrics", "not a metric registry"),
    ("unknown_key", registry_text(changed(LOSS, colour="red")), "not a metric registry"),
    ("missing_key", registry_text(without(LOSS, "better")), "not a metric registry"),
    ("aliases_is_text", registry_text(changed(LOSS, aliases="lm loss")), "aliases is not a list"),
    ("alias_is_text", registry_text(changed(LOSS, aliases=["lm loss"])), "an alias must have"),
    ("alias_without_trainer", registry_text(changed(LOSS, aliases=[{"spelling": "l"}])), "an alias must have"),
    ("alias_with_blank", registry_text(changed(LOSS, aliases=[{"spelling": " l", "trainer": "a"}])), "without outer blanks"),
    (
        "alias_in_unknown_unit",
        registry_text(changed(LOSS, aliases=[{"spelling": "l", "trainer": "a", "printed_in": "furlong"}])),
        "is not a unit",
    ),
    ("alias_twice", registry_text(changed(LOSS, aliases=LOSS["aliases"] * 2)), "appears twice"),
    (
        "alias_is_other_name",
        registry_text(changed(LOSS, aliases=[{"spelling": "Step_Time_S", "trainer": "a"}]), TIME),
        "name of another metric",
    ),
    ("not_yaml", b"registry: [", ""),
    ("repeated_key", b"registry: metrics\nregistry: metrics\n", "duplicate key"),
]


@pytest.mark.parametrize(("text", "message"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_broken_registry_is_refused_with_its_place(text: bytes, message: str):
    with pytest.raises(DataError) as caught:
        parse_registry(text, "r.yaml")
    assert message in caught.value.message
    assert caught.value.where.startswith("r.yaml")


SHIPPED = load_registry()


IDS = {"loss": 1, "grad_norm": 2, "learning_rate": 3, "tokens_per_s": 20, "step_time_s": 40, "val_loss": 100}


@pytest.mark.parametrize(("name", "number"), IDS.items())
def test_ids_that_receipts_already_hold(name: str, number: int):
    assert SHIPPED.by_name[name].id == number


@pytest.mark.parametrize("metric", SHIPPED.metrics, ids=lambda metric: metric.name)
def test_window_follows_the_kind_of_metric(metric: Any):
    evaluation = 100 <= metric.id < 120
    event = metric.name.endswith("_duration_s")
    memory = metric.unit == "byte" or metric.name == "memory_used_ratio"
    rate = metric.klass == "rate" or memory
    assert metric.window == ("steady" if rate and not evaluation and not event else "all")


UNITS = {"_per_s": "/s", "_s": "s", "_bytes": "byte", "_ratio": "1"}


@pytest.mark.parametrize("metric", SHIPPED.metrics, ids=lambda metric: metric.name)
def test_a_metric_is_sound(metric: Any):
    closed = {"klass": Klass, "window": Window, "better": Better, "unit": Unit}
    assert all(getattr(metric, key) in get_args(values) for key, values in closed.items())
    assert metric.id > 0 and metric.description.strip() and metric.name.isidentifier() and metric.name == metric.name.lower()
    stem = metric.name.removesuffix("_per_device")
    unit = next((unit for suffix, unit in UNITS.items() if stem.endswith(suffix)), None)
    if unit is None:
        assert metric.unit not in ("s", "byte") and not metric.unit.endswith("/s")
    else:
        assert metric.unit.endswith(unit) if unit == "/s" else metric.unit == unit


ALIASES = [
    ("loss", "loss"),
    ("lm loss", "loss"),
    ("tok/sec", "tokens_per_s"),
    ("tps", "tokens_per_s_per_device"),
    ("elapsed time per iteration (ms)", "step_time_s"),
    ("throughput per gpu (tflop/s/gpu)", "flops_per_s_per_device"),
    ("eval_loss", "val_loss"),
    ("lr", "learning_rate"),
    ("consumed samples", "samples_total"),
    ("wps", None),  # of the whole job in fairseq, of one device in early torchtitan
    ("train loss", None),  # of a step in llm.c, of an evaluation in nanoGPT
    ("time", None),  # of a step, of the run, of the day
]


@pytest.mark.parametrize(("spelling", "name"), ALIASES)
def test_spelling_means(spelling: str, name: str | None):
    assert SHIPPED.by_alias.get(spelling) == name
