"""Speeds of a log without stamps while it is followed: by when its lines were read, and only as far as these times prove."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.derive import Plan, plan_reading
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.follow.growth import Growth
from receipt_cli.follow.jobs import JobState
from receipt_cli.follow.loop import Figures, Snapshot, figures, live_figures
from receipt_cli.render.live import render_live, render_watch
from receipt_cli.render.style import Style
from receipt_cli.scan.arrivals import LiveArrivals

WALL = 1_750_000_000.0


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_reading()


def line(step: int, stamped: bool = False) -> bytes:
    stamp = f"2026-01-31 10:{step // 2:02}:{30 * step % 60:02} " if stamped else ""
    return f"{stamp}step {step}/100 loss {3 / (1 + 0.05 * step):.4f}\n".encode()


def followed(plan: Plan, reads: list[list[bytes]], every_s: float, *, skipped: int = 0, pause_s: float = 0.25) -> Growth:
    """A log of which some blocks were read ``every_s``."""
    growth = Growth("job.log", plan, once=True, coming=LiveArrivals(skipped, pause_s, 100.0, WALL))
    for number, blocks in enumerate(reads, 1):
        growth.add(blocks, 100.0 + number * every_s)
    return growth


def shown(found: Figures, width: int = 80) -> tuple[str, str]:
    """The view of one followed log, and the row of a table of many."""
    snapshot = Snapshot("job.log", found.size_bytes, 1, WALL, found, None, "until Ctrl-C")
    one = render_live(snapshot, Style(width=width))
    many = render_watch([JobState("job.log", "running", 0.0, snapshot)], Style(width=width))
    assert max(map(len, one.splitlines())) <= width
    return " ".join(one.split()), " ".join(many.split())


def test_step_time_and_rate_by_when_lines_were_read(plan: Plan) -> None:
    growth = followed(plan, [[line(step)] for step in range(1, 41)], 3.0)
    found = live_figures(growth)
    assert found.came
    one, many = shown(found)
    assert "step time 3.00 s 90 % below 3.00 s, as they came" in one
    assert "throughput 0.333 steps/s as they came, waits included" in one
    assert "0.333 steps/s" in many


def test_the_document_names_no_times_that_are_in_no_file(plan: Plan) -> None:
    growth = followed(plan, [[line(step)] for step in range(1, 41)], 3.0)
    document = canonical_bytes(live_figures(growth).document)
    untimed = Growth("job.log", plan, once=True)
    untimed.add([line(step) for step in range(1, 41)])
    reading = untimed.snapshot()
    running = replace(reading, options=replace(reading.options, running=True))
    assert document == canonical_bytes(figures(running.derivation()).document)
    assert b'"times"' not in document


def test_what_the_log_had_before_has_no_time(plan: Plan) -> None:
    old = b"".join(line(step) for step in range(1, 31))
    growth = followed(plan, [[old], *([line(step)] for step in range(31, 61))], 3.0, skipped=len(old))
    found = live_figures(growth)
    realised = found.summary["realised"]
    assert isinstance(realised, dict)
    assert (realised["step_count"], realised["duration_s"]) == (29, 87.0)
    assert "step time 3.00 s" in shown(found)[0]


def test_steps_that_are_read_together_prove_a_rate_and_no_step_time(plan: Plan) -> None:
    steps = list(range(1, 61))
    found = live_figures(followed(plan, [[line(step) for step in steps[at : at + 3]] for at in range(0, 60, 3)], 3.0))
    assert found.summary["step_times"] is None
    one, _ = shown(found)
    assert "step time" not in one
    assert "throughput" in one


def test_steps_as_quick_as_the_looks_prove_no_step_time(plan: Plan) -> None:
    found = live_figures(followed(plan, [[line(step)] for step in range(1, 61)], 0.5))
    assert found.summary["step_times"] is None
    assert "throughput 2 steps/s" in shown(found)[0]


def test_stamps_of_the_log_come_first(plan: Plan) -> None:
    growth = followed(plan, [[line(step, stamped=True)] for step in range(1, 41)], 7.0)
    found = live_figures(growth)
    assert not found.came
    assert "step time 30.0 s 90 % below 30.0 s, by the stamps" in shown(found)[0]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_times_do_not_depend_on_cuts(plan: Plan, data: st.DataObject) -> None:
    """A record came with the read in which its last byte came, wherever blocks are cut and however often somebody looks."""
    text = b"".join(line(step) for step in range(1, 13)) + b"bar\rbar 2\r\nlast"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=9)))
    skipped = data.draw(st.integers(0, len(text)))
    coming = LiveArrivals(skipped, 0.25, 0.0, WALL)
    bounds = [0, *cuts, len(text)]
    for number, (start, stop) in enumerate(pairwise(bounds)):
        middle = data.draw(st.integers(start, stop))
        coming.add([block for block in (text[start:middle], text[middle:stop]) if block], float(number))
        if data.draw(st.booleans()):
            assert coming.until_now().fits
    ends = [at for at in range(len(text)) if text[at : at + 1] in (b"\n", b"\r") and text[at - 1 : at] != b"\r"] + [len(text)]
    clock = coming.until_now().clock_of(np.arange(len(ends)))
    for end, came in zip(ends, clock.tolist(), strict=True):
        number = next(n for n, stop in enumerate(bounds[1:]) if end <= stop)
        assert (math.isnan(came) and end <= skipped) or came == WALL + number


def test_a_log_of_many_reads(plan: Plan, tmp_path: Path) -> None:
    """The times outgrow the room that they begin with."""
    coming = LiveArrivals(0, 0.25, 0.0, WALL)
    for number in range(3000):
        coming.add([b"x\n"], float(number))
    assert coming.until_now().clock_of(np.arange(3000)).tolist() == [WALL + number for number in range(3000)]
