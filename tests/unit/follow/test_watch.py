"""A view that costs next to nothing: nothing is drawn or folded again before something came, and seldom where it is dear."""

import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from receipt_cli.derive import Plan, Reading, plan_reading
from receipt_cli.follow import loop as module
from receipt_cli.follow.growth import Growth
from receipt_cli.follow.loop import LEAST_S, SHARE, Snapshot, Watch

LINES = (
    (Path(__file__).resolve().parents[3] / "fixtures" / "logs" / "nanochat" / "speedrun-2025-10.log")
    .read_bytes()
    .splitlines(keepends=True)
)


class Slow(Growth):
    """A log of which the figures take ``cost`` seconds."""

    cost = 0.0
    folds = 0
    clock: types.SimpleNamespace

    def snapshot(self, *, timed: bool = False) -> Reading:
        self.folds += 1
        self.clock.now += self.cost
        return super().snapshot(timed=timed)


class Kept(Watch):
    def __init__(self, drawn: list[Snapshot]) -> None:
        super().__init__("run.log")
        self.drawn = drawn

    def show(self, state: Snapshot) -> None:
        self.drawn.append(state)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.SimpleNamespace]:
    made = types.SimpleNamespace(now=1000.0)
    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: made.now))
    yield made


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_reading()


def play(plan: Plan, clock: types.SimpleNamespace, *, cost: float, seconds: float, tick: float) -> tuple[Slow, list[Snapshot]]:
    """Let a line come every ``tick`` seconds."""
    growth, drawn = Slow("run.log", plan, once=True), list[Snapshot]()
    growth.cost, growth.clock = cost, clock
    watch = Kept(drawn)
    lines = iter(LINES[20:] * 20)
    until = clock.now + seconds
    while clock.now < until:
        growth.add([next(lines)])
        watch.look(growth, 1.7e9, ())
        clock.now += tick
    return growth, drawn


def test_at_most_four_pictures_a_second(plan: Plan, clock: types.SimpleNamespace) -> None:
    _, drawn = play(plan, clock, cost=0.0, seconds=5.0, tick=0.01)
    assert 15 <= len(drawn) <= 5.0 / LEAST_S + 1


def test_dear_figures_are_made_seldom_and_the_bytes_are_told_meanwhile(plan: Plan, clock: types.SimpleNamespace) -> None:
    growth, drawn = play(plan, clock, cost=0.5, seconds=30.0, tick=0.1)
    assert 2 <= growth.folds <= 30.0 / (0.5 * SHARE) + 1
    assert len(drawn) > 60
    assert drawn[-1].size_bytes > (drawn[-1].figures.size_bytes if drawn[-1].figures else 0)


def test_nothing_is_drawn_while_nothing_comes(plan: Plan, clock: types.SimpleNamespace) -> None:
    growth, drawn = Slow("run.log", plan, once=True), list[Snapshot]()
    growth.clock, growth.cost = clock, 0.5
    watch = Kept(drawn)
    growth.add(LINES[:40])
    watch.look(growth, 1.7e9, ())
    growth.add(LINES[40:50])
    for _ in range(200):
        watch.look(growth, None, ())
        clock.now += 0.25
    assert len(drawn) == 1, "nobody said that more had come"
    watch.look(growth, 1.7e9, ())
    assert [state.figures.size_bytes for state in drawn if state.figures] == [len(b"".join(LINES[:n])) for n in (40, 50)]


def test_what_came_while_figures_were_dear_is_shown_later_without_more(plan: Plan, clock: types.SimpleNamespace) -> None:
    growth, drawn = Slow("run.log", plan, once=True), list[Snapshot]()
    growth.clock, growth.cost = clock, 0.5
    watch = Kept(drawn)
    for part in (LINES[:40], LINES[40:50]):
        growth.add(part)
        clock.now += 1.0
        watch.look(growth, 1.7e9, ())
    for _ in range(100):
        clock.now += 0.25
        watch.look(growth, None, ())
    assert drawn[-1].figures.size_bytes == growth.size_bytes
    assert growth.folds == 2
