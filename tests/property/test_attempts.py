"""However often a run starts over and however many copies are printed: each step stands once, from its last attempt."""

import math
import statistics
from collections.abc import Iterator
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.logs import receipt_of

Attempt = list[tuple[int, float]]
numbers = st.floats(1e-3, 1e3).map(lambda value: round(value, 4))


@st.composite
def runs(draw: st.DrawFn) -> list[Attempt]:
    """Return attempts of (step, loss), each of which begins before the last step of the one before, none at the start.

    From the very start, or behind a single record, it may be another run: see ``test_fold_launches`` and ``test_law_counters``.
    """
    attempts: list[Attempt] = []
    start = draw(st.integers(0, 20))
    for _ in range(draw(st.integers(1, 5))):
        losses = draw(st.lists(numbers, min_size=4, max_size=30))
        attempts.append([(start + n, loss) for n, loss in enumerate(losses)])
        start = draw(st.integers(attempts[0][0][0] + 2, attempts[-1][-1][0] - 1))
    return attempts


def printed(attempts: list[Attempt], copies: int, noise: list[str]) -> str:
    lines = [f"iter {n}: loss {loss}, time {100 + n}.00ms, mfu 40.00%" for attempt in attempts for n, loss in attempt]
    lines = [line for line in lines for _ in range(copies)]
    return "".join(f"{line}\n{noise[i % len(noise)] if noise else ''}" for i, line in enumerate(lines))


def _at_the_same_step(attempts: list[Attempt]) -> Iterator[tuple[float, float]]:
    """Yield the losses that an attempt and a later one print at one step."""
    for one, other in combinations(map(dict, attempts), 2):
        yield from ((one[step], other[step]) for step in one.keys() & other.keys())


@settings(max_examples=80)
@given(runs(), st.integers(1, 3), st.lists(st.sampled_from(["\n", "saving\n", "\x1b[0m\n", "loss\n", "   \r"]), max_size=3))
def test_each_step_stands_once(attempts: list[Attempt], copies: int, noise: list[str]) -> None:
    limit: float = math.inf
    standing: list[tuple[int, float]] = []
    for attempt in reversed(attempts):
        standing[:0] = [(n, loss) for n, loss in attempt if n < limit]
        limit = min(limit, attempt[0][0])
    document = receipt_of(printed(attempts, copies, noise))
    summary, problems = document["summary"], document["derivation"]["problems"]["first"]
    null = {tuple(field.split("/")[-2:]) for problem in problems for field in problem["fields"]}
    far = any(2 * abs(one - other) > max(one, other) for one, other in _at_the_same_step(attempts))
    assert far or not null  # such losses are of another run
    total, losses = sum(map(len, attempts)), [loss for _, loss in standing]
    steps = summary["steps"]
    assert (steps["first"], steps["last"]) == (standing[0][0], standing[-1][0])
    assert (steps["record_count"], steps["superseded_count"]) == (len(standing), total - len(standing))
    assert steps["restart_count"] == len(attempts) - 1
    found = summary["metrics"]["loss"]
    assert (found["record_count"], found["first"], found["last"]) == (len(losses), losses[0], losses[-1])
    middle = {"median": statistics.median(losses), "mean": math.fsum(losses) / len(losses)}
    wanted = {"min": min(losses), "max": max(losses), **middle}
    assert {key: found[key] for key in wanted} == wanted | dict.fromkeys(key for key in wanted if ("loss", key) in null)
    times = summary["metrics"]["step_time_s"]
    assert (times["first"], times["last"]) == ((100 + standing[0][0]) / 1000, (100 + standing[-1][0]) / 1000)
    steady = summary["steady_state"]
    assert times["record_count"] == steady["record_count"] == len(standing) - steady["excluded_warmup"]
