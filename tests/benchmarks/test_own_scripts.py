"""Generated logs of own scripts: equal shares, the same logs from the same seed, and truths that the logs print."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from benchmarks.generators.own_scripts import FIELDS, FORMS, PLAIN_FORMS, TRAITS, script
from benchmarks.generators.own_scripts import dealt as deal
from benchmarks.own_scripts import COUNT, SEED, verdict


def test_each_production_is_drawn_twenty_times():
    hands = deal(SEED, COUNT)
    assert min(Counter(form for form, _ in hands)[form] for form in FORMS) >= 20
    assert min(Counter(trait for _, trait in hands)[trait] for trait in TRAITS) >= 20
    assert all(form in PLAIN_FORMS for form, trait in hands if trait)
    assert hands == deal(SEED, COUNT)


@pytest.mark.parametrize("form", FORMS)
def test_the_log_prints_its_truth(form):
    for number, trait in enumerate(["", *TRAITS] if form in PLAIN_FORMS else [""] * 6):
        made = script(SEED, number, form, trait)
        assert made == script(SEED, number, form, trait)
        printed = {float(one) for one in re.findall(r"\d+\.?\d*(?:e[-+]\d+)?", made.text.replace("\n", "") + " " + made.text)}
        for reading in made.readings:
            assert set(reading) <= set(FIELDS)
            wanted = {value for field, value in reading.items() if field.startswith("loss") and value is not None}
            assert wanted <= printed


@pytest.mark.parametrize(
    ("wanted", "got", "said"),
    [
        ({"first": 1, "loss_last": 0.5}, {"first": 1, "loss_last": 0.5}, "right"),
        ({"first": 1, "loss_last": 0.5}, {"first": None, "loss_last": 0.5}, "missing"),
        ({"first": 1, "loss_last": 0.5}, {"first": None, "loss_last": 0.4}, "wrong"),
        ({"loss_first": None}, {"loss_first": None}, "right"),
        ({"loss_first": None}, {"loss_first": 0.0}, "wrong"),
        ({"has_steps": None, "record_count": None}, {"has_steps": False, "record_count": 0}, "right"),
        ({"has_steps": None, "record_count": None}, {"has_steps": True, "record_count": 4}, "wrong"),
        ({"has_steps": True}, {"has_steps": False}, "wrong"),
    ],
)
def test_a_verdict_is_the_worst_of_its_fields(wanted, got, said):
    assert verdict([wanted], got)[0] == said


def test_a_log_with_two_readings_must_equal_one_of_them():
    readings = [{"record_count": 4, "loss_first": 0.9}, {"record_count": 20, "loss_first": 1.1}]
    assert verdict(readings, {"record_count": 20, "loss_first": 1.1})[0] == "right"
    assert verdict(readings, {"record_count": 4, "loss_first": 1.1})[0] == "wrong"
    assert verdict(readings, {"record_count": None, "loss_first": 1.1})[0] == "missing"
