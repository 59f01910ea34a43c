"""Ablation receipts: what ``validate`` finds, what the document says."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.documents.validate import validate_bytes, validate_document
from receipt_cli.emit import AblationReceipt, NotConforming


def receipt(**changed: Any) -> AblationReceipt:
    stated: dict[str, Any] = {
        "kind": "attention_sink",
        "variant": "no_sink_bias",
        "baseline": "baseline",
        "changes": {"sink_bias": False},
        "architecture": "gpt",
        "config": {"n_layer": 3, "n_head": 4},
        "from_step": 200,
    }
    made = AblationReceipt(**{**stated, **changed})
    for number, step in enumerate((100, 200, 300)):
        made.record(step, {"loss": 4.0 - number}, {"sink_mass": [0.25 * number, 0.5, 0.125]})
    return made


def test_what_is_whole_is_valid() -> None:
    made = receipt()
    assert made.validate() == []
    document = made.to_json()
    assert validate_document(document) == []
    assert document["model"]["layer_count"] == 3
    assert document["window"] == {"from_step": 200, "step_count": 2}
    assert document["layer_curves"]["sink_mass"] == {"0": [0.0, 0.25, 0.5], "1": [0.5] * 3, "2": [0.125] * 3}
    assert document["summary"]["curves"]["loss"]["mean"] == 2.5
    assert document["summary"]["layer_curves"]["sink_mass"] == {"min": 0.125, "min_layer": 2, "max": 0.5, "max_layer": 0}


def cut(made: AblationReceipt) -> None:
    made.layer_curves["sink_mass"][1].pop()


def lose(made: AblationReceipt) -> None:
    del made.layer_curves["sink_mass"][1]


def renumber(made: AblationReceipt) -> None:
    made.layer_curves["sink_mass"] = {layer + 1: curve for layer, curve in made.layer_curves["sink_mass"].items()}


def twice(made: AblationReceipt) -> None:
    made.layer_curves["sink_mass"]["0"] = [0.5] * 3  # type: ignore[index]


def swap(made: AblationReceipt) -> None:
    made.steps.reverse()


def empty(made: AblationReceipt) -> None:
    made.config.clear()


def shorten(made: AblationReceipt) -> None:
    made.curves["loss"] = [1.0]


def deepen(made: AblationReceipt) -> None:
    made.config["n_layer"] = 4


@pytest.mark.parametrize(
    ("spoil", "pointer", "reason"),
    [
        pytest.param(cut, "/layer_curves/sink_mass/1", "2 entries for 3 steps", id="a layer's curve is as long as steps"),
        pytest.param(shorten, "/curves/loss", "1 entries for 3 steps", id="a curve is as long as steps"),
        pytest.param(lose, "/layer_curves/sink_mass", "has 2 layers, the model has 3", id="every layer is there"),
        pytest.param(renumber, "/layer_curves/sink_mass", "are not 0 to 2", id="layers count from 0"),
        pytest.param(twice, "/layer_curves/sink_mass", "twice", id="a layer is there once"),
        pytest.param(swap, "/steps/1", "not after", id="steps grow"),
        pytest.param(empty, "/model/config", "minProperties", id="a configuration is there"),
        pytest.param(deepen, "/model/config/n_layer", "layer_count", id="and states the depth"),
    ],
)
def test_what_is_broken_is_found(spoil: Callable[[AblationReceipt], None], pointer: str, reason: str) -> None:
    made = receipt()
    spoil(made)
    problems = made.validate()
    assert any(problem.pointer == pointer and reason in problem.reason for problem in problems), problems


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"kind": "Attention sink"}, "/ablation/kind"),
        ({"variant": ""}, "/ablation/variant"),
        ({"baseline": "no_sink_bias"}, "/ablation/baseline"),
        ({"baseline": None}, "/ablation/baseline"),
        ({"changes": {"sink": [1]}}, "/ablation/changes/sink"),
        ({"config": {"n_head": 4}}, "/model/layer_count"),
        ({"run": {"started_at": "yesterday"}}, "/run/started_at"),
        ({"config": {"n_layer": 3, "scale": math.nan}}, "/model/config/scale"),
    ],
)
def test_what_is_stated_wrongly_is_found(changed: dict[str, Any], pointer: str) -> None:
    assert pointer in {problem.pointer for problem in receipt(**changed).validate()}


def test_a_value_that_is_missing_or_not_finite_is_null() -> None:
    made = AblationReceipt(kind="sink", variant="v", architecture="gpt", config={"n_layer": 1})
    made.record(1, {"loss": math.inf})
    made.record(2, {"late": 1.0}, {"mass": [math.nan]})
    made.record(3, {"loss": 2.0, "late": None})
    document = made.to_json()
    assert document["curves"] == {"loss": [None, None, 2.0], "late": [None, 1.0, None]}
    assert document["layer_curves"] == {"mass": {"0": [None, None, None]}}
    assert document["summary"]["curves"]["loss"]["nonfinite_count"] == 1
    assert made.validate() == []


def test_layers_are_numbers_again_when_it_is_read() -> None:
    document = json.loads(json.dumps(receipt().to_json()))
    again = AblationReceipt.from_json(document)
    assert again.layer_curves["sink_mass"][0] == [0.0, 0.25, 0.5]
    assert again.to_json() == document
    document["steps"].append(400)
    with pytest.raises(NotConforming, match="curves"):
        AblationReceipt.from_json(document)


def test_nothing_is_written_that_is_not_valid(tmp_path: Path) -> None:
    made = receipt()
    path = tmp_path / "ablation.json"
    cut(made)
    with pytest.raises(NotConforming) as error:
        made.write(path)
    assert error.value.problems[0].pointer == "/layer_curves/sink_mass/1"
    assert not path.exists()
    made = receipt()
    made.attach("checkpoint", "s3://bucket/step300")
    made.write(path)
    assert validate_bytes(path.read_bytes(), "ablation.json") == []
