"""The forms of a whole log are judged: units are converted, and neither cuts of the log nor the kernel change a doubt."""

import itertools
import json
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.parse import load_grammar
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import Doubt, Segment
from tests.tools.examples import costly
from tests.tools.made import LOOSE

GRAMMARS = [load_grammar(json.dumps(LOOSE).encode(), "made/v1.yaml"), *(g for g in shipped() if g.id in ("nanogpt", "mlx-lm"))]
ENGINE = Engine(GRAMMARS, load_catalogue())
Judged = tuple[list[Doubt], dict[object, object]]


def judged(engine: Engine, segment: Segment) -> Judged:
    """Return the doubts about a log, and the numbers that were kept."""
    body, _ = engine.finish(segment)
    columns = {
        (key, name): (list(column.rows), list(column.values))
        for key, kept in body.rules.items()
        for name, column in kept.numbers.items()
    }
    return sorted(body.doubts), dict(sorted(columns.items()))


def record(n: int, loss: str | None = None, before: str = "", time: str = "131.97ms") -> str:
    return f"{before}round {n}: loss {loss or f'{3 - n / 100:.4f}'}, took {time}\n"


def read(text: str) -> Judged:
    return judged(ENGINE, ENGINE.scan([text.encode()], whole=True))


def times(printed: str) -> tuple[list[str], list[float]]:
    """Return the kinds of doubts, and the times that are kept of twenty, of which the eighth is ``printed``."""
    doubts, columns = read("".join(record(n, time=printed if n == 7 else "131.97ms") for n in range(20)))
    return [doubt.kind for doubt in doubts], next(values for (_, name), (_, values) in columns.items() if name == "time")


@pytest.mark.parametrize(
    ("printed", "milliseconds"), [("0.25s", 250.0), ("250000us", 250.0), ("250.00ms", 250.0), ("0.5min", 30_000.0)]
)
def test_a_time_in_another_unit_is_converted(printed: str, milliseconds: float) -> None:
    kinds, values = times(printed)
    assert (kinds, len(values), values[6], values[7]) == ([], 20, 131.97, pytest.approx(milliseconds))


@pytest.mark.parametrize("printed", ["131.97GB", "131.97tok/s", "131.97"])
def test_a_unit_that_does_not_measure_the_same_is_named(printed: str) -> None:
    kinds, values = times(printed)
    assert (kinds, values) == (["unit_ambiguous"], [131.97] * 19)


def test_each_doubt_is_named_once_with_its_lines() -> None:
    strange = {3: record(3, "3,1234"), 5: record(5, before="Teacher "), 9: record(9, "3,1")}
    doubts, _ = read("".join(strange.get(n, record(n)) for n in range(40)))
    assert [(doubt.kind, doubt.lines) for doubt in doubts] == [("figure_unread", (4, 10)), ("foreign_record", (6,))]


LINES = st.lists(
    st.sampled_from(
        [
            *(record(n) for n in range(8)),
            record(8, "1,234.5"),
            record(8, "3,1234"),
            record(9, "nan"),
            record(9, "--"),
            record(5, before="Teacher "),
            record(6, before='they said "'),
            record(7, time="0.13s"),
            "round 8: loss 3.",
            "Iter 40: Train loss 1.500, Learning Rate 1.000e-05, It/sec 1.236, Tokens/sec 385.375\n",
            "Iter 40: Train loss 1.\n",
            "nothing\n",
        ]
    ),
    max_size=60,
).map("".join)


@settings(max_examples=costly(120), deadline=None)
@given(LINES, st.lists(st.integers(0, 4000), max_size=6))
def test_a_log_that_is_cut_anywhere_has_the_same_doubts(text: str, places: list[int]) -> None:
    log = text.encode()
    bounds = [0, *sorted(place % (len(log) + 1) for place in places), len(log)]
    pieces = [log[a:b] for a, b in itertools.pairwise(bounds)]
    wanted = repr(read(text))
    assert repr(judged(ENGINE, reduce(ENGINE.merge, [ENGINE.scan([piece]) for piece in pieces]))) == wanted
    last = ENGINE.scan([pieces[-1]])
    for piece in reversed(pieces[:-1]):
        last = ENGINE.merge(ENGINE.scan([piece]), last)
    assert repr(judged(ENGINE, last)) == wanted


@pytest.fixture(scope="module")
def without_kernel() -> Engine:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("receipt_cli.scan.engine.load_kernel", lambda: None)
        return Engine(GRAMMARS, load_catalogue())


@settings(max_examples=costly(80), deadline=None)
@given(LINES)
def test_the_kernel_changes_no_doubt(without_kernel: Engine, text: str) -> None:
    by_patterns = Engine(GRAMMARS, load_catalogue(), by_layout=False)
    wanted = read(text)
    for engine in (without_kernel, by_patterns):
        assert repr(judged(engine, engine.scan([text.encode()], whole=True))) == repr(wanted)
