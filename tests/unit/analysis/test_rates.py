"""Rates of step records, from their batch and their step time."""

import pytest

from receipt_cli.analysis.rates import StepRate, scaled
from receipt_cli.events.model import Event
from receipt_cli.events.table import EventTable
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.records.envelope import NO_RANK

RULE = Rule("train_step", "step", ())
GRAMMAR = Grammar(
    id="toy", version=1, title="", upstream="", trainer="toy", layer="trainer", completion="none", rules=(RULE,), ignore=(),
    no_match=(), proves=(), excludes=(), sha256="", where="",
)  # fmt: skip


def step(**metrics: float) -> Event:
    event = Event(0, 1, NO_RANK, 0.0, GRAMMAR, RULE)
    event.metrics = metrics
    return event


@pytest.mark.parametrize(
    ("per_sample", "constant", "metrics", "want"),
    [
        (128.0, None, {"global_batch_size": 4.0, "step_time_s": 2.0}, 256.0),
        (128.0, 64.0, {"step_time_s": 2.0}, 32.0),
        (None, 64.0, {"global_batch_size": 4.0, "step_time_s": 2.0}, 32.0),
        (128.0, None, {"step_time_s": 2.0}, None),
        (128.0, 64.0, {"step_time_s": 0.0}, None),
        (128.0, 64.0, {}, None),
    ],
)
def test_a_rate_is_the_units_of_the_step_over_its_time(
    per_sample: float | None, constant: float | None, metrics: dict[str, float], want: float | None
) -> None:
    rate, _ = StepRate(per_sample, constant).of(EventTable([step(**metrics)]))
    assert rate.values.tolist() == ([] if want is None else [want])
    assert scaled(rate, 3.0).values.tolist() == ([] if want is None else [3 * want])


def test_amounts_are_those_of_records_with_a_rate() -> None:
    ramp = [step(global_batch_size=size, step_time_s=1.0) for size in (2.0, 4.0, 4.0)]
    _, amounts = StepRate(10.0, None).of(EventTable([*ramp, step(global_batch_size=8.0)]))
    assert amounts == [20.0, 40.0]
