"""Records at the cap on their length: what is read of one, and what is said of it, is the same wherever blocks are cut."""

import pytest

from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.records.split import RECORD_CAP
from receipt_cli.scan.engine import Engine


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine([grammar for grammar in shipped() if grammar.id == "nanogpt"], load_catalogue())


@pytest.mark.parametrize("by_layout", [False, True])
@pytest.mark.parametrize("more", [-1, 0, 1, 2])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b""])
def test_a_record_at_the_cap_in_two_blocks(engine: Engine, more: int, end: bytes, by_layout: bool) -> None:
    if not by_layout:
        engine = Engine(engine.grammars, engine.catalogue, by_layout=False)
    step = b"iter 1: loss 2.5, time 10.00ms, mfu 1.00%\n"
    text = step + b"x" * (RECORD_CAP + more) + end + (step if end else b"")
    for cut in (len(step) + 1, len(step) + 40_000, len(step) + RECORD_CAP, len(step) + RECORD_CAP + more):
        body, lines = engine.finish(engine.scan([text[:cut], text[cut:]]))
        known = [(problem.kind, problem.line_number, problem.detail) for _, problem in body.problems.first]
        said = ("record_too_long", 2, f"record of {RECORD_CAP + more} bytes: only the first {RECORD_CAP} were read")
        assert (known, lines) == ([said] if more > 0 else [], text.count(b"\n") + (not end))
