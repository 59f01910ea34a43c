"""Generated logs of own scripts: equal shares, the same logs from the same seed, and truths that the logs print."""

from __future__ import annotations

import re

import pytest

from benchmarks.generators.own_scripts import FIELDS, FORMS, PLAIN_FORMS, TRAITS, script
from benchmarks.own_scripts import SEED


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
