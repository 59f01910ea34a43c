"""The rule of the masks: what a receipt says of how many it holds is how many it holds."""

from __future__ import annotations

from receipt_cli.documents.invariants.rule import Broken, Document, Rule, pointer
from receipt_cli.redaction.mask import count_masks


def _counted(document: Document) -> Broken:
    derivation = document["derivation"]
    stated = derivation.get("redactions")
    if stated is None:
        return  # of a version that does not say
    told = {key: value for key, value in derivation.items() if key != "redactions"}
    held = count_masks(document["phases"], document["failure"], told)
    for kind in sorted({*stated, *held}):
        if stated.get(kind, 0) != held.get(kind, 0):
            yield pointer("derivation", "redactions", kind), f"is {stated.get(kind, 0)}, the document holds {held.get(kind, 0)}"


REDACTION_RULES = (Rule("redactions_counted", ("phases", "failure", "derivation"), _counted),)
