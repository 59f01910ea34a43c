"""Which metrics are drawn."""

from typing import Any

import pytest

from receipt_cli.errors import UsageError
from receipt_cli.report.plot_data import choose


def document(*names: str) -> dict[str, Any]:
    return {"summary": {"metrics": {name: {} for name in names}}}


def test_the_usual_metrics_are_drawn_by_default() -> None:
    names = ("val_bpb", "loss", "samples_per_s", "tokens_per_s", "mfu_ratio")
    assert choose([document(*names)], []) == ["loss", "val_bpb", "tokens_per_s"]
    assert choose([document("a", "b", "c", "d")], []) == ["a", "b", "c"]


def test_each_wanted_metric_is_drawn_once() -> None:
    assert choose([document("loss", "mfu_ratio")], ["mfu_ratio", "loss", "mfu_ratio"]) == ["mfu_ratio", "loss"]


def test_an_unknown_metric_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError) as caught:
        choose([document("loss", "grad_norm")], ["grad_nrm"])
    assert caught.value.try_ == "--metric grad_norm"
    with pytest.raises(UsageError, match="nothing to draw"):
        choose([{"summary": None}], [])
