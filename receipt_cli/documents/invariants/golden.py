"""Rules of golden curves: columns have equal lengths, steps ascend, and each system and figure stands once."""

from __future__ import annotations

from itertools import pairwise

from receipt_cli.documents.invariants.rule import Broken, Document, Rule


def _columns(document: Document) -> Broken:
    for number, reference in enumerate(document["references"]):
        for place, curve in enumerate(reference["curves"]):
            at, wanted = f"/references/{number}/curves/{place}", len(curve["steps"])
            for name in ("values", "tolerances"):
                if curve[name] is not None and len(curve[name]) != wanted:
                    yield f"{at}/{name}", f"has {len(curve[name])} entries for {wanted} steps"
            if any(after <= before for before, after in pairwise(curve["steps"])):
                yield f"{at}/steps", "does not ascend"
            if (curve["rule"] == "exact") != (curve["tolerances"] is None):
                yield f"{at}/tolerances", f"does not go with the rule {curve['rule']}"


def _once(document: Document) -> Broken:
    systems: list[object] = []
    for number, reference in enumerate(document["references"]):
        if reference["system"] in systems:
            yield f"/references/{number}/system", "stands more than once"
        systems.append(reference["system"])
        names = [curve["metric"] for curve in reference["curves"]]
        for place, name in enumerate(names):
            if name in names[:place]:
                yield f"/references/{number}/curves/{place}/metric", "stands more than once"


GOLDEN_RULES = (Rule("golden_columns", ("references",), _columns), Rule("golden_once", ("references",), _once))
