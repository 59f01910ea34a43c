"""A layout that follows from a record whose numbers have other lengths is the one that is learned of the record itself."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.identity import find_difference, read_both, stretch
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.records.heuristics import Prefilter
from receipt_cli.scan import layout_cache
from receipt_cli.scan.book import examine
from receipt_cli.scan.candidates import Candidates
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.kernel.program import Names, write_program
from receipt_cli.scan.layout import Layout, learn_layout
from receipt_cli.scan.layout_cache import LayoutCache
from tests.tools.examples import costly
from tests.tools.slow import one_in

ROOT = Path(__file__).resolve().parents[2]
LOGS = sorted((ROOT / "fixtures" / "logs").glob("*/*.log"))


class Compared(LayoutCache):
    """Learns each layout that follows from another one, too."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def derive(self, record: bytes, masked: bytes, candidates: Candidates, prefilter: Prefilter) -> Layout | None:
        layout = super().derive(record, masked, candidates, prefilter)
        if layout is not None:
            outcome = examine(record, candidates.rules)
            any_bar = b"%|" in record and candidates.plain and not outcome.shows_bars
            assert not outcome.crowded
            learned = learn_layout(record, outcome, candidates, prefilter.possible_in(masked), any_bar=any_bar)
            assert learned is not None, record
            assert [*parts(layout)] == [*parts(learned)], record
            self.count += 1
        return layout


def parts(layout: Layout) -> Iterator[object]:
    outcome = layout.outcome
    yield from (
        layout.sample,
        layout.fixed,
        layout.absent,
        layout.echoes,
        [grammar.id for grammar, _ in outcome.ignored],
        outcome.near(),
        outcome.marks,
        layout.any_bar,
        write_program(Names(), layout),
    )
    for grammar, rule, events in outcome.read:
        for event in events:
            yield from (
                (grammar.ref, rule.name),
                event.reread(layout.sample),
                event.end,
                event.spans,
                event.unregistered_spans,
                event.keys,
                event.unread,
                event.declared,
                event.parts,
            )


def derived(logs: list[Path], copies: int) -> int:
    """Compare all layouts of the logs and of stretched copies that follow from others; return how many these are."""
    grammars, catalogue, count = shipped(), load_catalogue(), 0
    for path in logs:
        log, rng = path.read_bytes(), random.Random(path.name)
        engine = Engine(grammars, catalogue)
        engine.layouts = known = Compared()
        engine.finish(engine.scan([log, *(stretch(log, rng) for _ in range(copies))]))
        count += known.count
    return count


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask what lengths mean before many records have come."""
    monkeypatch.setattr(layout_cache, "PATIENCE", 3)


@pytest.mark.parametrize("number", one_in(12, range(12)))
def test_layouts_that_follow_are_those_that_are_learned(number: int) -> None:
    assert derived(LOGS[number::12], costly(8)) > 100


@pytest.mark.parametrize("number", one_in(3, range(12)))
def test_stretched_logs_give_what_the_patterns_give(number: int) -> None:
    rng = random.Random(number)
    log = rng.choice(LOGS).read_bytes()[:60_000]
    fast, pure = read_both(shipped(), [log, *(stretch(log, rng, 0.1) for _ in range(3))])
    assert find_difference(fast, pure) is None


def test_a_long_word_is_no_relative_of_short_ones() -> None:
    """The patterns bound words at 60 bytes and above; a record with a longer one may miss what its relatives are."""
    rng = random.Random(1)
    line = "{'loss': 0.5, 'note_%s': 1.25, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.5}\n"
    lines = [stretch((line % ("x" * rng.choice([1, 40, 55, 58, 59, 60]))).encode(), rng, 0.8) for _ in range(300)]
    fast, pure = read_both(shipped(), [b"".join(lines)])
    assert find_difference(fast, pure) is None
