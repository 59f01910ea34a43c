"""Law: the cause of a slow step follows from its printed parts alone, not from their order, and without parts there is none."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.receipts.production import Request, produce
from tests.tools.examples import costly

USUAL = {"data_time_s": 0.02, "communication_time_s": 0.08, "compute_time_s": 0.3}
CAUSES = {"data_time_s": "data", "communication_time_s": "communication", "compute_time_s": "compute"}
REST = 0.01
COUNT = 60
"""Steps of a log."""

Slow = Mapping[int, tuple[str, float]]
"""Step → the part that grew, and by how many seconds."""


def log(slow: Slow, parts: Sequence[str] = tuple(USUAL), *, rank: int | None = None) -> str:
    """Return the log of a loop that prints its parts in the order of ``parts``."""
    lines = []
    for step in range(COUNT):
        times = {name: seconds + step % 3 / 1000 for name, seconds in USUAL.items()}
        if step in slow:
            part, more = slow[step]
            times[part] += more
        shown = " ".join(f"{name}={times[name]:.4f}" for name in parts)
        whole = sum(times.values()) + REST
        label = "" if rank is None else f"[rank{rank}]: "
        lines.append(f"{label}[receipt] step={step}/{COUNT} loss={4 - step / 50:.4f} step_time_s={whole:.4f} {shown}".rstrip())
    return "".join(f"{line}\n" for line in lines)


def slow_steps(text: str, folder: Path) -> dict[str, Any] | None:
    path = folder / "run.log"
    path.write_text(text)
    summary = produce(Request(path=str(path))).document["summary"]
    assert isinstance(summary, dict)
    return summary.get("slow_steps")


planted = st.dictionaries(
    st.integers(20, COUNT - 1), st.tuples(st.sampled_from(sorted(USUAL)), st.floats(0.5, 20)), min_size=1, max_size=6
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slow")


@settings(max_examples=costly(80))
@given(slow=planted, order=st.permutations(sorted(USUAL)))
def test_each_planted_step_is_found_with_the_part_that_grew_in_any_order(slow: Slow, order: Sequence[str], folder: Path) -> None:
    found = slow_steps(log(slow, order), folder)
    assert found is not None
    assert found == slow_steps(log(slow), folder)
    assert {one["step"]: one["cause"] for one in found["longest"]} == {step: CAUSES[part] for step, (part, _) in slow.items()}
    assert sum(share["step_count"] for share in found["causes"].values()) == found["step_count"] == len(slow)


@settings(max_examples=costly(80))
@given(slow=planted, hidden=st.sets(st.sampled_from(sorted(USUAL))))
def test_a_part_that_is_not_printed_is_no_cause(slow: Slow, hidden: set[str], folder: Path) -> None:
    found = slow_steps(log(slow, [name for name in USUAL if name not in hidden]), folder)
    assert found is not None
    told = {one["step"]: one["cause"] for one in found["longest"]}
    assert told == {step: None if part in hidden else CAUSES[part] for step, (part, _) in slow.items()}
    if hidden == USUAL.keys():
        assert (found["causes"], found["verdict"]) == ({}, None)


@settings(max_examples=costly(80))
@given(steps=st.integers(1, COUNT), factor=st.floats(0.001, 1000))
def test_a_log_without_slow_steps_says_nothing_of_them(steps: int, factor: float, folder: Path) -> None:
    text = "".join(f"[receipt] step={n}/{steps} loss=2.5 step_time_s={factor * (1 + n % 5 / 50)!r}\n" for n in range(steps))
    assert slow_steps(text, folder) is None
