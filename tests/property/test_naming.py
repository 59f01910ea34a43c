"""Cells that are named together are those that are named one by one: tables and blocks, made and shipped."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.identity import plain_columns
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.events import naming
from receipt_cli.events.model import Ledger
from receipt_cli.events.naming import Naming, together
from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.model import Grammar
from receipt_cli.grammar.parse import build_grammar
from receipt_cli.scan import row_texts
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import Segment, SegmentBody
from tests.tools.examples import costly
from tests.tools.made import made_grammar
from tests.tools.slow import one_in

LOGS = sorted((Path(__file__).parents[2] / "fixtures" / "logs").glob("*/*.log"))
OTHER = {"type": "number", "metric": "other"}
FIELDS = {
    "loss": {"type": "number"},
    "first": {"type": "number", "printed_in": "ms", "metric": "step_time_s"},
    "second": {"type": "number", "printed_in": "ms", "metric": "step_time_s", "value": r"([\d.]++)\)?$"},
    "share": {**OTHER, "printed_in": "percent", "null_if": ["-1", "0.0"]},
    "memory": {**OTHER, "printed_in": "GiB"},
    "count": {"type": "integer", "metric": "tokens_total"},
    "status": {"type": "string"},
}
KEYS = {"loss": "loss", "t1": "first", "t2": "second", "share": "share", "mem": "memory", "count": "count", "state": "status"}
STEP = {"type": "integer"}
GRAMMAR = made_grammar(
    {
        "table": {
            "event": "step",
            "literal": ["#tab", "row "],
            "table": {
                "header": r"#tab(?: ++\S++)++$",
                "row": r"row(?: ++\S++)++$",
                "keys": {"n": "step", **KEYS},
                "skip_cells": 1,
            },
            "fields": {"step": STEP, **FIELDS},
        },
        "opened": {
            "event": "step",
            "literal": ["open ", " .: "],
            "block": {
                "open": r"\bopen (?P<step>\d++)(?: time (?P<first>\S++))?$",
                "row": r" {2}(?P<key>[^.\]]+?) \.: (?P<value>\S[^\r\n]*+)$",
                "keys": KEYS,
                "ignore": ["x2"],
                "gap": 2,
                "requires": ["loss"],
            },
            "fields": {"step": STEP, **FIELDS},
        },
        "bare": {
            "event": "step",
            "literal": " !: ",
            "block": {"row": r" {2}(?P<key>[^!\]]+?) !: (?P<value>\S++)$", "keys": {"n": "step", **KEYS}, "gap": 1},
            "fields": {"step": STEP, **FIELDS},
        },
    }
)
NAMES = ["n", "loss", "t1", "t2", "share", "mem", "count", "state", "x1", "x2", "x3"]
VALUES = [
    "7",
    "10",
    "-1",
    "0.0",
    "2.5",
    "12.75",
    "1e-05",
    "3.14E+02",
    ".5",
    "6.",
    "nan",
    "-inf",
    "1,234",
    "0,123",
    "40ms",
    "8.5GB",
]
VALUES += [
    "12345678901234567",
    "123456789012345678901234567890",
    "1.25e-30",
    "1234567890.5",
    "38.5%",
    "(1.5, 2.25)",
    "-",
    "é7",
    "-0.0",
]
LABELS = ["", "", "", "[rank0]: ", "[rank1]: "]


def lines_of(rng: random.Random, labels: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table or of a block, and what is between them."""
    label, kind = rng.choice(labels), rng.randrange(5)
    names = rng.choices(NAMES, k=rng.randrange(1, 6))
    if kind == 0:
        yield f"{label}#tab {' '.join(names)}"
    if kind < 2:
        counts = rng.choices([len(names) + 1] * 4 + [2, 3], k=rng.randrange(6))
        yield from (f"{label}row {' '.join(rng.choices(VALUES, k=count))}" for count in counts)
    elif kind == 2:
        yield f"{label}open {rng.randrange(100)}{rng.choice(['', ' time 2.5', ' time x'])}"
    elif kind == 3:
        yield from ("noise" for _ in range(rng.randrange(5)))
    sign = rng.choice([".", "!"])
    values = {name: rng.choice(VALUES) for name in NAMES}
    yield from (f"{label}  {name} {sign}: {values[name] if rng.random() < 0.7 else rng.choice(VALUES)}" for name in names)


def scanned(grammars: Sequence[Grammar], pieces: Sequence[bytes], *, by_layout: bool) -> tuple[Engine, SegmentBody]:
    engine = Engine(grammars, load_catalogue(), by_layout=by_layout)
    whole = Segment()
    for piece in pieces:
        whole = engine.merge(whole, engine.scan([piece]))
    return engine, engine.finish(whole)[0]


@contextmanager
def large(answer: bool) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patch.object(naming, "is_large", lambda *_: answer))
        stack.enter_context(patch.object(together, "PIECE", 7))
        stack.enter_context(patch.object(row_texts, "STRETCH", 4))
        yield


def named_cells(engine: Engine, body: SegmentBody, grammar: Grammar, *, many: bool) -> dict[str, Any]:
    """Return everything that naming gives."""
    ledger = Ledger()
    names = Naming(grammar, ledger, body.copied)
    found: dict[str, Any] = {}
    with large(many):
        for rule in grammar.rules:
            columns = engine.columns(body, grammar, rule)
            if columns is not None and (rule.table or rule.block):
                made = names.named(rule, columns)
                lines = {n: list(c.lines or ()) for n, c in (*made.numbers.items(), *made.unregistered.items())}
                order = list(made.numbers), list(made.unregistered), list(made.texts)
                found[rule.name] = plain_columns(made), lines, order
    problems = sorted((p.line_number or 0, p.kind, p.detail, p.excerpt) for p in names.problems)
    return {**found, "problems": problems, "ledger": (ledger.read, ledger.other, ledger.dropped)}


@settings(max_examples=costly(200), deadline=None)
@given(seed=st.integers(0, 1 << 32), labelled=st.sampled_from([LABELS[:1], LABELS, LABELS[3:]]), copies=st.booleans())
def test_made_rows(seed: int, labelled: Sequence[str], copies: bool) -> None:
    rng = random.Random(seed)
    grammar = build_grammar(GRAMMAR, "made.yaml", "0" * 64)
    text = "".join(f"{line}\n" for _ in range(rng.randrange(60)) for line in lines_of(rng, labelled)).encode()
    cuts = sorted({0, len(text), *(rng.randrange(len(text) + 1) for _ in range(rng.randrange(4)))})
    pieces = [text[a:b] for a, b in pairwise(cuts)]
    bodies = [scanned([grammar], pieces, by_layout=by_layout) for by_layout in (False, True)]
    empty = sorted(rng.sample(range(1, bodies[0][1].lines + 2), rng.randrange(bodies[0][1].lines // 4 + 1))) if copies else ()
    found = []
    for engine, body in bodies:
        body.copied = empty
        found += [named_cells(engine, body, grammar, many=many) for many in (False, True)]
    assert all(one == found[0] for one in found[1:])


@pytest.mark.parametrize("path", one_in(3, LOGS), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_shipped_logs(path: Path) -> None:
    engine, body = scanned(shipped(), [path.read_bytes()] * 2, by_layout=True)
    for grammar in engine.grammars:
        if any(engine.columns(body, grammar, rule) is not None for rule in grammar.rules if rule.table or rule.block):
            assert named_cells(engine, body, grammar, many=True) == named_cells(engine, body, grammar, many=False)
