"""Golden curves: exact ones of equal runs, tolerances of the spread of several, and what leaves them."""

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from receipt_cli.comparison.golden import System, hold, make_golden, read_golden
from receipt_cli.comparison.streams import Stream
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.validate import validate_document
from receipt_cli.errors import DataError, UsageError
from receipt_cli.numeric.precision import Printing

STEPS = 300


def receipt(lane: str | None = None, device: str | None = None, ranks: int | None = None) -> dict[str, Any]:
    """A receipt, as far as golden curves read it."""
    accelerators = None if device is None else [{"name": device, "count": ranks, "memory_bytes": None}]
    parallelism = None if ranks is None else {"world_size": ranks}
    return {
        "run": {"lane": lane},
        "header": {"hardware": {"accelerators": accelerators}, "parallelism": parallelism},
        "derivation": {"log": {"sha256": "0" * 64}},
    }


def stream(values: Any, name: str = "loss", decimals: int = 4, first: int = 0) -> Stream:
    """A figure printed with so many decimals from step ``first`` on; its lines are one behind the steps."""
    shown = np.round(np.asarray(values, np.float64), decimals)
    steps = np.arange(first, first + len(shown), dtype=np.float64)
    role = "data" if name == "samples_total" else "numbers"
    printing = Printing(decimals=decimals)
    return Stream(name, role, "none", steps, shown, printing, lambda index: first + index + 1, decides=name == "loss")


def losses(change: Callable[[int, float], float] = lambda step, loss: loss, noise: int | None = None, drift: float = 2e-4) -> Any:
    """The losses of a run; ``noise`` seeds what sums in another order add: more from step to step."""
    draw, wander = random.Random(noise), 0.0
    made = []
    for step in range(STEPS):
        wander = 0.95 * wander + (draw.gauss(0, drift) if noise is not None else 0.0)
        batch = random.Random(step).gauss(0, 0.05)
        made.append(change(step, 2.5 + 4 / (1 + step / 20) + batch) + wander)
    return made


def run(*args: Any, **kwargs: Any) -> tuple[dict[str, Any], Mapping[str, Stream]]:
    return receipt(), {"loss": stream(losses(*args, **kwargs))}


CHANGES: list[Callable[[int, float], float]] = [
    lambda step, loss: loss * 1.01,  # another rate of learning
    lambda step, loss: loss + (0.05 if step >= 200 else 0),  # a jump
    lambda step, loss: loss + step / 5000,  # falls more slowly
    lambda step, loss: loss + (3 if step == 150 else 0),  # a spike
    lambda step, loss: loss - random.Random(step).gauss(0, 0.05) + random.Random(step + 7).gauss(0, 0.05),  # other data
    lambda step, loss: math.nan if step >= 250 else loss,
    lambda step, loss: 2.5 + 4 / (1 + step / 22),
    lambda step, loss: loss + (0.5 if step < 5 else 0),  # other parameters at the start
    lambda step, loss: loss + 0.1 * math.sin(step / 10),
    lambda step, loss: round(loss, 1),  # another precision
]


class TestSpread:
    @pytest.fixture
    def golden(self) -> dict[str, Any]:
        made = make_golden([run(noise=number) for number in (1, 2, 3)])
        assert validate_document(made) == []
        assert [curve["rule"] for curve in made["references"][0]["curves"]] == ["spread/1"]
        return made

    @pytest.mark.parametrize("noise", range(10, 20))
    def test_ten_good_runs_stay_inside(self, golden: dict[str, Any], noise: int) -> None:
        (curve,) = hold(golden, *run(noise=noise)).curves
        assert (curve.departure, curve.inside, curve.missing) == (None, STEPS, 0)

    @pytest.mark.parametrize("change", CHANGES)
    def test_ten_changed_runs_leave_it(self, golden: dict[str, Any], change: Callable[[int, float], float]) -> None:
        (curve,) = hold(golden, *run(change, noise=4)).curves
        assert curve.departure is not None
        assert curve.departure.line == curve.departure.step + 1

    def test_a_ratio_takes_the_place_of_the_spread(self) -> None:
        made = make_golden([run(noise=1)], ratio=0.01)
        (curve,) = made["references"][0]["curves"]
        assert (curve["rule"], curve["tolerances"][0]) == ("ratio", pytest.approx(0.01 * float(curve["values"][0])))


class TestExact:
    def test_one_changed_digit_is_named_with_its_step_line_and_both_values(self) -> None:
        golden, values = make_golden([run()]), losses()
        values[17] += 0.0001
        (curve,) = hold(golden, receipt(), {"loss": stream(values)}).curves
        departure = curve.departure
        assert departure is not None
        assert (departure.step, departure.line, curve.inside, curve.meets) == (17, 18, STEPS - 1, 18)
        assert float(departure.found) - float(departure.golden) == pytest.approx(0.0001)

    def test_fewer_digits_are_inside(self) -> None:
        (curve,) = hold(make_golden([run()]), receipt(), {"loss": stream(losses(), decimals=2)}).curves
        assert curve.departure is None

    def test_a_position_is_exact_even_with_a_ratio(self) -> None:
        both = {"loss": stream(losses()), "samples_total": stream(range(8, 8 * STEPS + 8, 8), "samples_total", 0)}
        golden = make_golden([(receipt(), both)], ratio=0.5)
        assert [curve["rule"] for curve in golden["references"][0]["curves"]] == ["exact", "ratio"]
        lost = {**both, "samples_total": stream(range(16, 8 * STEPS + 16, 8), "samples_total", 0)}
        samples, loss = hold(golden, receipt(), lost).curves
        assert samples.departure is not None
        assert (samples.departure.step, samples.departure.golden, samples.departure.found) == (0, "8", "16")
        assert loss.departure is None

    def test_steps_that_the_run_does_not_print_are_missing(self) -> None:
        short = {"loss": stream(losses()[: STEPS // 2])}
        (curve,) = hold(make_golden([run()]), receipt(), short).curves
        assert (curve.compared, curve.missing, curve.departure) == (STEPS // 2, STEPS // 2, None)
        (curve,) = hold(make_golden([run()], steps=100), receipt(), short).curves
        assert (curve.compared, curve.missing) == (100, 0)


H100 = ("h100x8", "NVIDIA H100", 8)
A100 = ("a100x8", "NVIDIA A100", 8)


class TestSystems:
    @pytest.fixture
    def golden(self) -> dict[str, Any]:
        made = make_golden([(receipt(*H100), run()[1]), (receipt(*A100), run(lambda step, loss: loss + 1)[1])])
        assert [System(**reference["system"]) for reference in made["references"]] == [H100, A100]
        return made

    @pytest.mark.parametrize(
        ("system", "reason"),
        [
            (H100, None),
            (("h100x8", None, None), None),  # what a run does not say fits, if one reference is left
            ((None, None, None), "several of the references fits unknown system"),
            (("h100x8", "NVIDIA H100", 4), "none of the references fits h100x8, NVIDIA H100, 4 ranks"),
        ],
    )
    def test_a_run_is_held_against_its_own(self, golden: dict[str, Any], system: Any, reason: str | None) -> None:
        held = hold(golden, receipt(*system), run()[1])
        assert (held.reason or "").startswith(reason or "")
        assert [curve.departure for curve in held.curves] == ([None] if reason is None else [])

    def test_a_receipt_has_no_steps(self, golden: dict[str, Any]) -> None:
        assert hold(golden, receipt(*H100), None).reason == "a receipt has no steps: give the log, or --log"


class TestDocument:
    def test_what_is_written_is_read_again(self) -> None:
        made = make_golden([run(noise=1), run(noise=2)])
        assert read_golden(canonical_bytes(made), "golden.json") == made

    @pytest.mark.parametrize("text", [b"{}", b'{"schema_version": "golden/1.0"}', b'{"schema_version": "receipt/1.0"}'])
    def test_another_document_is_refused(self, text: bytes) -> None:
        with pytest.raises(DataError, match="not golden curves"):
            read_golden(text, "golden.json")

    def test_runs_without_a_loss_are_refused(self) -> None:
        with pytest.raises(UsageError, match="print no loss"):
            make_golden([(receipt(), {})])
