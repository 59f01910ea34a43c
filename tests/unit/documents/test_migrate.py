"""Migration: steps of a made-up kind chained, what is refused, and that nothing is computed or changed in place."""

import copy
from typing import Any

import pytest

from receipt_cli.documents.migrate import Edge, migrate
from receipt_cli.errors import DataError

Document = dict[str, Any]


def renamed(document: Document) -> Document:
    return {"mean_loss" if key == "loss" else key: value for key, value in document.items()}


def nested(document: Document) -> Document:
    rest = {key: value for key, value in document.items() if key != "mean_loss"}
    return {**rest, "metrics": {"loss": {"mean": document["mean_loss"]}}}


def careless(document: Document) -> Document:
    document["metrics"]["lanes"] = []
    return document


CHAIN = {
    "toy/1.0": Edge("toy/1.1", renamed),
    "toy/1.1": Edge("toy/2.0", nested),
    "toy/2.0": Edge("toy/2.1", careless),
    "toy/3.0": Edge("toy/3.1", renamed),
}
OLDEST = {"schema_version": "toy/1.0", "loss": 2.5, "header": {"cwd": "/work"}}


def test_three_steps_are_chained_in_order() -> None:
    made = migrate(OLDEST, steps=CHAIN)
    assert made.versions == ("toy/1.0", "toy/1.1", "toy/2.0", "toy/2.1")
    metrics = {"loss": {"mean": 2.5}, "lanes": []}
    assert made.document == {"schema_version": "toy/2.1", "header": {"cwd": "/work"}, "metrics": metrics}
    assert next(iter(made.document)) == "schema_version"


def test_the_document_is_left_as_it_was_even_by_a_careless_step() -> None:
    document = {"schema_version": "toy/2.0", "metrics": {"loss": {"mean": 2.5}}}
    before = copy.deepcopy(document)
    made = migrate(document, steps=CHAIN).document
    assert made["metrics"] is not document["metrics"]
    assert document == before


def test_a_gap_in_the_chain_is_told() -> None:
    with pytest.raises(DataError, match=r"no chain of steps leads from toy/1\.0 to toy/3\.1") as caught:
        migrate(OLDEST, "toy/3.1", CHAIN)
    assert caught.value.why == "it ends at toy/2.1"
