"""Migration: the versions on the way, and that a document is not changed in place."""

import copy
import json
from pathlib import Path

from receipt_cli.documents.migrate import migrate

EXAMPLES = Path(__file__).resolve().parents[3] / "fixtures" / "receipts"


def test_a_document_goes_through_every_version_up_to_the_newest() -> None:
    document = json.loads((EXAMPLES / "receipt-1.1/valid/import_of_values.json").read_bytes())
    made = migrate(document)
    assert made.versions == tuple(f"receipt/1.{minor}" for minor in range(1, 5))
    assert made.document == {**document, "schema_version": "receipt/1.4"}
    assert migrate(document, "receipt/1.2").versions == ("receipt/1.1", "receipt/1.2")


def test_a_new_major_version_gets_its_fields_and_the_document_is_left_as_it_was() -> None:
    document = json.loads((EXAMPLES / "evaluation-1.0/valid/full.json").read_bytes())
    before = copy.deepcopy(document)
    made = migrate(document).document
    assert next(iter(made)) == "schema_version"
    assert (made["schema_version"], made["scores"]) == ("evaluation/2.0", [])
    assert document == before
