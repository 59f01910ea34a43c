"""Rules of golden curves: columns have equal lengths, steps ascend, and each system and figure stands once."""

from __future__ import annotations

from itertools import pairwise

from receipt_cli.documents.invariants.rule import Broken, Document, Rule, check_lengths, check_once


def _columns(document: Document) -> Broken:
    for number, reference in enumerate(document["references"]):
        for place, curve in enumerate(reference["curves"]):
            at = f"/references/{number}/curves/{place}"
            yield from check_lengths(((f"{at}/{name}", curve[name]) for name in ("values", "tolerances")), len(curve["steps"]))
            if any(after <= before for before, after in pairwise(curve["steps"])):
                yield f"{at}/steps", "does not ascend"
            if (curve["rule"] == "exact") != (curve["tolerances"] is None):
                yield f"{at}/tolerances", f"does not go with the rule {curve['rule']}"


def _once(document: Document) -> Broken:
    references = document["references"]
    yield from check_once(
        (f"/references/{number}/system", frozenset(one["system"].items())) for number, one in enumerate(references)
    )
    for number, reference in enumerate(references):
        metrics = [curve["metric"] for curve in reference["curves"]]
        yield from check_once((f"/references/{number}/curves/{place}/metric", name) for place, name in enumerate(metrics))


GOLDEN_RULES = (Rule("golden_columns", ("references",), _columns), Rule("golden_once", ("references",), _once))
