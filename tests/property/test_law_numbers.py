"""Law 8: a number is read whole or not at all, in a shipped grammar, a learned rule, JSON lines, a table and an import."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import receipt_cli
from receipt_cli.errors import ReceiptError
from receipt_cli.importers.importing import import_document
from tests.tools.examples import costly

FOREIGN = Path(__file__).resolve().parents[2] / "fixtures" / "foreign"
COUNT = 30
LOSSES = [f"{7.3846 - 0.1317 * n:.4f}" for n in range(COUNT)]
Printed = Callable[[int, str], str]
READERS: dict[str, tuple[str, Printed]] = {
    "nanogpt": ("", lambda n, x: f"iter {n}: loss {x}, time 98.12ms, mfu 21.40%"),
    "nanochat": ("", lambda n, x: f"step {n:05d}/00030 (3.75%) | loss: {x} | lrm: 0.10 | dt: 1422.01ms | tok/sec: 737,391"),
    "megatron": (
        "",
        lambda n, x: (
            f" iteration {n:8d}/      90 | consumed samples: {n * 8:12d} | elapsed time per iteration (ms): 406.1 | "
            f"learning rate: 1.500E-04 | global batch size:     8 | lm loss: {x} | loss scale: 1.0 | grad norm: 1.250 |"
        ),
    ),
    "mlx-lm": ("", lambda n, x: f"Iter {n}: Train loss {x}, Learning Rate 1.000e-05, It/sec 1.236, Tokens/sec 385.375"),
    "trainer's objects": ("", lambda n, x: f"{{'loss': {x}, 'grad_norm': 1.25, 'learning_rate': 0.0002, 'epoch': {n / 8:.3f}}}"),
    "verl": ("", lambda n, x: f"step:{n} - train/loss:{x} - train/grad_norm:1.25 - train/lr:0.0003"),
    "script": ("", lambda n, x: f"update {n} | loss {x} | lr 0.0003"),
    "script that ends with it": ("", lambda n, x: f"[{n}/90] lr=0.0003 loss={x}"),
    "JSON lines": ("", lambda n, x: f'{{"step": {n}, "loss": {x}, "lr": 0.0003}}'),
    "table": ("  step      loss        lr\n", lambda n, x: f"{n:6d}  {x:>8}  0.000300"),
}
"""How each reader's records print a loss."""
NONFINITE = st.sampled_from(
    [
        "nan",
        "NaN",
        "NAN",
        "-nan",
        "nan.0",
        "NaN.",
        "-nan(ind)",
        "nan(snan)",
        "1.#QNAN",
        "-1.#IND",
        "inf",
        "-inf",
        "+Inf",
        "Infinity",
    ]
)
ABSENT = st.sampled_from(["null", "None", "--", "N/A", "NA"])


def stated(reader: str, losses: list[str], path: Path, change: Callable[[list[str]], list[str]] = list) -> dict[str, Any]:
    """Return the receipt of a log that prints ``losses``, of which ``change`` changes lines; empty where it is refused."""
    head, printed = READERS[reader]
    lines = change([printed(n + 1, loss) for n, loss in enumerate(losses)])
    path.write_text(head + "".join(f"{line}\n" for line in lines), "utf-8")
    try:
        return receipt_cli.read(path).receipt.to_dict()
    except ReceiptError:
        return {}


def figures(document: dict[str, Any]) -> set[float]:
    """Return the least, the greatest, the first and the last of each loss that a receipt states."""
    metrics = (document.get("summary") or {}).get("metrics") or {}
    stats = (metrics[name][stat] for name in {"loss", "train_loss"} & {*metrics} for stat in ("first", "last", "min", "max"))
    return {value for value in stats if value is not None}


TRUE = {float(loss) for loss in LOSSES}
at = st.integers(3, COUNT - 1)
cases = pytest.mark.parametrize("reader", READERS)
quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=costly(15), deadline=None)


@cases
def test_each_reader_reads_its_losses(reader: str, tmp_path: Path) -> None:
    document = stated(reader, LOSSES, tmp_path / "run.log")
    assert {float(LOSSES[0]), float(LOSSES[-1])} == figures(document)
    assert document["checks"]["finite_losses"] is True


@cases
@quick
@given(where=at, text=NONFINITE)
def test_a_loss_that_is_not_finite_is_no_number_and_never_certified(reader: str, tmp_path: Path, where: int, text: str) -> None:
    document = stated(reader, [*LOSSES[:where], text, *LOSSES[where + 1 :]], tmp_path / "run.log")
    assert figures(document) <= TRUE
    assert not document or document["checks"]["finite_losses"] is not True


@cases
@quick
@given(where=at, text=ABSENT)
def test_an_absent_loss_is_no_number(reader: str, tmp_path: Path, where: int, text: str) -> None:
    assert figures(stated(reader, [*LOSSES[:where], text, *LOSSES[where + 1 :]], tmp_path / "run.log")) <= TRUE


@cases
@quick
@given(start=st.integers(0, COUNT - 2), count=st.integers(1, COUNT))
def test_a_decimal_comma_is_read_as_one_or_not_at_all(reader: str, tmp_path: Path, start: int, count: int) -> None:
    losses = [loss.replace(".", ",") if start <= n < start + count else loss for n, loss in enumerate(LOSSES)]
    assert figures(stated(reader, losses, tmp_path / "run.log")) <= TRUE


@pytest.mark.parametrize(
    "reader", [reader for reader in READERS if reader not in ("trainer's objects", "verl", "JSON lines", "table")]
)
@pytest.mark.parametrize("form", ["{}", "{}e+00"])
def test_a_column_of_decimal_commas_is_read(reader: str, form: str, tmp_path: Path) -> None:
    document = stated(reader, [form.format(loss.replace(".", ",")) for loss in LOSSES], tmp_path / "run.log")
    assert {float(LOSSES[0]), float(LOSSES[-1])} == figures(document)
    assert document["checks"]["finite_losses"] is True


@cases
@quick
@given(where=at, thousands=st.sampled_from(["4,083.1906", "12,345,678.25", "1,234.5"]))
def test_thousands_are_one_number_or_none(reader: str, tmp_path: Path, where: int, thousands: str) -> None:
    document = stated(reader, [*LOSSES[:where], thousands, *LOSSES[where + 1 :]], tmp_path / "run.log")
    assert figures(document) <= TRUE | {float(thousands.replace(",", ""))}


def _begun(line: str, loss: str, kept: int) -> str:
    """Return a record up to within its loss."""
    return line[: line.index(loss) + kept]


@cases
@pytest.mark.parametrize("how", ["cut", "cut before a number", "wrapped", "wrapped, one lost", "torn", "cut at the end"])
@quick
@given(where=st.integers(3, COUNT - 3), kept=st.integers(1, 3))
def test_a_piece_of_a_loss_is_none(reader: str, how: str, tmp_path: Path, where: int, kept: int) -> None:
    def change(lines: list[str]) -> list[str]:
        begun = _begun(lines[where], LOSSES[where], kept)
        if how == "cut at the end":
            return [*lines[:where], begun]
        ends = {"wrapped": lines[where][len(begun) :], "wrapped, one lost": lines[where][len(begun) + 1 :]}
        rest = [begun, ends[how]] if how in ends else [begun + lines[where + 1]] if how == "torn" else [begun]
        rest += ["4 files were saved"] if how == "cut before a number" else []
        return [*lines[:where], *rest, *lines[where + 1 + (how == "torn") :]]

    document = stated(reader, LOSSES, tmp_path / "run.log", change)
    assert figures(document) <= TRUE
    if how == "wrapped":  # the next line goes on with it
        assert figures(document) == {float(LOSSES[0]), float(LOSSES[-1])}
        assert "record_cut" not in {problem["kind"] for problem in document["derivation"]["problems"]["first"]}


IMPORTED = {
    "trainer_state.json": ("hf-trainer-state.json", r'("loss": )[\d.]+', '"{}"'),
    "metrics.csv": ("trackers/metrics.csv", "(0,,9,,)2.5", "{}"),
    "training.csv": ("trackers/training.csv", "(0,0.8125,)0.6875", "{}"),
    "metrics.jsonl": ("trackers/metrics.jsonl", r'("loss": )2.5', '"{}"'),
}
"""Documents of other programs: the file, where a loss is in it, and how a text is written there."""


@pytest.mark.parametrize("name", IMPORTED)
@pytest.mark.parametrize("text", ["nan", "NaN", "-inf", "nan.0", "1.#QNAN", "-nan(ind)"])
def test_an_import_certifies_no_loss_that_is_not_finite(tmp_path: Path, name: str, text: str) -> None:
    source, where, form = IMPORTED[name]
    found = re.compile(where).search(written := (FOREIGN / source).read_text("utf-8"))
    assert found is not None
    path = tmp_path / name
    path.write_text(written[: found.end(1)] + form.format(text) + written[found.end() :], "utf-8")
    assert import_document(str(path))["checks"]["finite_losses"] is not True


SEPARATORS = [" ", "'", "\N{RIGHT SINGLE QUOTATION MARK}", "\N{NARROW NO-BREAK SPACE}", "\N{NO-BREAK SPACE}", ","]
WHOLE = ("JSON lines", "table")
"""Readers of cells with an end of their own: one that is no number is none."""


@cases
@quick
@given(at=st.integers(1, COUNT - 1), thousands=st.integers(1, 999), separator=st.sampled_from(SEPARATORS))
def test_no_part_of_separated_thousands_is_a_loss(reader: str, tmp_path: Path, at: int, thousands: int, separator: str) -> None:
    losses = [*LOSSES[:at], f"{thousands}{separator}204.5511", *LOSSES[at + 1 :]]
    assert figures(stated(reader, losses, tmp_path / "run.log")) <= TRUE | {1000 * thousands + 204.5511}


@pytest.mark.parametrize("reader", [name for name in READERS if name not in WHOLE])
@quick
@given(at=at, printed=st.sampled_from(["<0.001", ">999.0", "0x1.4p+2", "-0x1p-3"]))
def test_a_bound_and_a_hexadecimal_number_are_no_loss(reader: str, tmp_path: Path, at: int, printed: str) -> None:
    losses = [*LOSSES[:at], printed, *LOSSES[at + 1 :]]
    assert figures(stated(reader, losses, tmp_path / "run.log")) <= TRUE
