"""Cutting a log anywhere and merging gives what one pass gives, byte for byte."""

from functools import reduce
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.identity import find_difference, plain_body
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import Segment
from tests.fuzz.feed import cut
from tests.tools.examples import costly

ENGINE = Engine(shipped(), load_catalogue())
LOGS = sorted((Path(__file__).resolve().parents[2] / "fixtures" / "logs").glob("*/*.log"))

PIECES = [
    b"iter 10: loss 3.2841, time 131.97ms, mfu 29.53%",
    b"iter 20: loss nan, time 131.97ms, mfu -100.00%",
    b"[rank0]:\x1b[31mstep:  1  \x1b[32mloss: 12.38837  \x1b[38;2;180;60;0mgrad_norm: 20.7500\x1b[39m",
    b"0: 2026-01-02T03:04:05Z iter 30: loss 1.5, time 1.00ms",
    b"{'loss': 0.488, 'grad_norm': 1.8, 'learning_rate': 6.9e-05, 'epoch': 0.06}",
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 706.00 MiB.",
    b" 12%|\xe2\x96\x88\xe2\x96\x8f | 5/40 [00:01<00:07,  4.9it/s]",
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n",
    b"\x08\x08\x08",
    b"\x00\x00",
    b"\xff\xfe",
    "é█".encode(),
    b"^[[B^[[A",
    b"\x1b]0;title\x07",
    b"x" * 300,
    b"iter 40: loss",
    b" ",
]
logs = st.lists(st.sampled_from(PIECES) | st.binary(max_size=6), max_size=40).map(b"".join)


def closed(stretch: Segment) -> dict[str, object]:
    body, lines = ENGINE.finish(stretch)
    return {**plain_body(body), "lines": lines, "last": stretch.last_bytes, "size": stretch.size}


def assert_whole(log: bytes, stretch: Segment) -> None:
    assert find_difference(closed(stretch), closed(ENGINE.scan([log], whole=True))) is None


@settings(max_examples=costly(400), deadline=None)
@given(logs, st.lists(st.integers(0, 10_000), max_size=8))
def test_merging_neighbours_equals_one_pass(log: bytes, places: list[int]) -> None:
    parts = [ENGINE.scan([part]) for part in cut(log, places)]
    assert_whole(log, reduce(ENGINE.merge, parts))


@settings(max_examples=costly(200), deadline=None)
@given(logs, st.lists(st.integers(0, 10_000), min_size=2, max_size=6))
def test_merge_is_associative(log: bytes, places: list[int]) -> None:
    pieces = cut(log, places)

    def right_fold() -> Segment:
        parts = [ENGINE.scan([part]) for part in pieces]
        folded = parts.pop()
        while parts:
            folded = ENGINE.merge(parts.pop(), folded)
        return folded

    assert_whole(log, right_fold())


@settings(max_examples=costly(200), deadline=None)
@given(logs, st.lists(st.integers(0, 10_000), max_size=8))
def test_block_borders_do_not_matter(log: bytes, places: list[int]) -> None:
    assert_whole(log, ENGINE.scan(cut(log, places)))


@pytest.mark.parametrize("path", LOGS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_real_log_cut_at_odd_places(path: Path) -> None:
    log = path.read_bytes()[:40_000]
    step = max(1, len(log) // 23)
    parts = [ENGINE.scan([log[a : a + step]]) for a in range(0, len(log), step)]
    assert_whole(log, reduce(ENGINE.merge, parts))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(65_000, 140_000), st.sampled_from([b"\n", b"\r", b"\r\n", b""]), st.lists(st.integers(0, 300_000), max_size=5))
def test_a_record_over_the_cap_is_cut_the_same_way(size: int, end: bytes, places: list[int]) -> None:
    log = b"iter 1: loss 2.0, time 1.00ms\n" + b"y" * size + end + b"iter 2: loss 1.0, time 1.00ms\n"
    parts = [ENGINE.scan([part]) for part in cut(log, places)]
    assert_whole(log, reduce(ENGINE.merge, parts))
