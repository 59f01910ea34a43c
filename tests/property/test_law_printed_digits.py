"""Precision is what was printed: trailing zeros count, however few values there are."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.comparison.comparable import DEFAULT
from receipt_cli.comparison.contrasts import Run, contrast
from receipt_cli.comparison.load import make_run
from receipt_cli.comparison.rerun import Side, reproducibility
from receipt_cli.comparison.streams import read_streams
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.receipts.production import Product, Request, produce, produce_all
from receipt_cli.scan.presence import VARIABLE

LINE = "iter {0}: loss {1}, time {2}ms, mfu {3}%\n"


def read(folder: Path, losses: list[str], name: str = "run.log", time: str = "21.00", mfu: str = "2.00") -> Product:
    path = folder / name
    path.write_text("".join(LINE.format(10 * n, loss, time, mfu) for n, loss in enumerate(losses)))
    return produce(Request(path=str(path)))


def digits(product: Product, name: str = "loss") -> Any:
    return product.document["summary"]["metrics"][name]["printed_digits"]


@pytest.mark.parametrize("kernel", ["1", "0"])
@given(printed=st.lists(st.tuples(st.integers(0, 99_999_999), st.integers(1, 6)), min_size=3, max_size=40))
def test_the_digits_are_those_of_the_text(
    kernel: str, printed: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    losses = [f"{number / 10**places:.{places}f}" for number, places in printed]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, kernel)
        product = read(tmp_path_factory.mktemp("digits"), losses)
    places = [len(loss.partition(".")[2]) for loss in losses]
    assert digits(product) == {"least": min(places), "greatest": max(places)}
    found = product.document["summary"]["metrics"]["loss"]["places"]["resolution"]
    assert found == pytest.approx(10.0 ** -max(places))
    assert [digits(product, name) for name in ("step_time_s", "mfu_ratio")] == [{"least": n, "greatest": n} for n in (5, 4)]


PAIRS = [("3.2800", "3.2840"), ("6.3000", "6.3010"), ("2.0000", "2.0001"), ("1.50", "1.59"), ("4.000000", "4.000003")]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_trailing_zeros_are_digits_for_whoever_compares(one: str, other: str, tmp_path: Path) -> None:
    """All values of the first run end in zeros: of their values alone nobody can tell how finely they were printed."""
    first, second = (read(tmp_path, [loss] * 12, f"{number}.log") for number, loss in enumerate((one, other)))
    for runs in ([make_run("a", first.document, first), make_run("b", second.document, second)], [Run("a", first.document), Run("b", second.document)]):  # fmt: skip  # noqa: E501
        (loss,) = [m for m in contrast(runs[:1], runs[1:], DEFAULT, load_registry()).metrics if m.name == "loss"]
        assert loss.outcome == "different"
        assert loss.floor == pytest.approx(10.0 ** -len(one.partition(".")[2]))
    sides = [Side(name, each.document, read_streams(each)) for name, each in (("a", first), ("b", second))]
    (curve,) = [each for each in reproducibility(*sides, DEFAULT)["curves"] if each["metric"] == "loss"]
    assert curve["same"] is False
    assert curve["departs"]["step"] == 0


def test_a_coarser_print_of_the_same_values_is_equal(tmp_path: Path) -> None:
    values = [4 - number / 7 for number in range(20)]
    fine, coarse = (read(tmp_path, [f"{v:.{n}f}" for v in values], f"{n}.log") for n in (6, 2))
    sides = [Side(name, each.document, read_streams(each)) for name, each in (("a", fine), ("b", coarse))]
    (curve,) = [each for each in reproducibility(*sides, DEFAULT)["curves"] if each["metric"] == "loss"]
    assert curve["same"] is True


def test_an_exponent_leaves_the_digits_open(tmp_path: Path) -> None:
    assert digits(read(tmp_path, ["4.1e-02", "3.9e-02", "3.55e-02"])) is None
    assert digits(read(tmp_path, ["4.10", "nan", "3.90"])) == {"least": 2, "greatest": 2}


@pytest.mark.parametrize("kernel", ["1", "0"])
@given(
    foreign=st.sampled_from(["3.141", "3.14159265", "3.1", "3"]),
    head=st.sampled_from(["[rank3]: ", "Teacher ", "old/run.log:12:"]),
    at=st.integers(0, 12),
    digits_of=st.lists(st.integers(3, 6), min_size=12, max_size=12),
)
def test_a_record_that_a_law_leaves_out_has_no_digits(
    kernel: str, foreign: str, head: str, at: int, digits_of: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """They are those of the records that count, or nothing is said of them."""
    lines = [LINE.format(10 * n, f"{3 - n / 7:.{most}f}", "21.00", "2.00") for n, most in enumerate(digits_of)]
    lines.insert(at, head + LINE.format(10 * min(at, 11), foreign, "21.00", "2.00"))
    path = tmp_path_factory.mktemp("digits") / "run.log"
    path.write_text("".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, kernel)
        product = produce(Request(path=str(path)))
    assert product.document["summary"]["metrics"]["loss"]["record_count"] == 12
    assert digits(product) in (None, {"least": min(digits_of), "greatest": max(digits_of)})


def test_each_of_two_runs_has_its_own_digits(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    runs = ("".join(LINE.format(10 * n, f"{3 - n / 7:.{most}f}", "21.00", "2.00") for n in range(9)) for most in (2, 5))
    path.write_text("max_iters = 80\n".join(["", *runs]))
    found = [digits(product) for product in produce_all(Request(path=str(path)))]
    assert found == [{"least": n, "greatest": n} for n in (2, 5)]
