"""Labelled numbers that no rule reads: kept under their label, dropped and counted where the label says too little."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.receipts.production import Request, produce
from receipt_cli.scan.extraction import labelled
from tests.tools.logs import receipt_of, written

ROOT = Path(__file__).resolve().parents[3]
NANOGPT = "iter {0}: loss {1:.4f}, time 10.00ms, mfu 0.02%{2}\n"
MEGATRON = (
    " iteration {0:8}/     500 | consumed samples: {0} | elapsed time per iteration (ms): 1000.0 | learning rate: 2.8E-04 | "
    "global batch size:   128 | lm loss: {1:.6E} | loss scale: 1.0 |{2}\n"
)
GENERIC = "step={0} loss={1:.3f} grad_norm=1.2{2}\n"


@pytest.mark.parametrize("line", [NANOGPT, MEGATRON, GENERIC])
@pytest.mark.parametrize(
    ("more", "key", "value"),
    [
        (" util={0}%", "util", 0.39),
        (" new_term: 1.5e-3", "new_term", 0.0015),
        (" cache: 1.5 GiB", "cache", 1.5 * 2**30),
        (" speed: 12.5it/s", "speed (it/s)", 12.5),
        (" took: 15m 1s", "took", 901.0),
        (" took: 2 min 3.5 sec,", "took", 123.5),
    ],
)
def test_what_no_rule_names_is_kept(line: str, more: str, key: str, value: float) -> None:
    found = receipt_of("".join(line.format(n, 4 - n / 50, more.format(n)) for n in range(40)))
    assert found["summary"]["metrics"]["loss"]["record_count"] == 40
    assert found["summary"]["other_metrics"][key]["last"] == value
    cells = found["derivation"]["cells"]
    assert cells["other"]["by_key"][key] == 40
    assert cells["dropped"] == {"count": 0, "by_key": {}}


@pytest.mark.parametrize("line", [NANOGPT, MEGATRON, GENERIC])
def test_a_label_that_is_printed_twice_is_dropped_and_counted(line: str) -> None:
    log = "".join(line.format(n, 4 - n / 50, " acc=0.5 (acc=0.7)") for n in range(40))
    found = receipt_of(log)
    assert "acc" not in found["summary"]["other_metrics"]
    assert found["derivation"]["cells"]["dropped"] == {"count": 80, "by_key": {"acc": 80}}
    assert not written(log, "run.log", lambda path: produce(Request(path)).clean)


@pytest.mark.parametrize("line", [NANOGPT, MEGATRON, GENERIC])
@pytest.mark.parametrize(
    "printed", [" [a] acc=0.5 [b] acc=0.7", " | a: acc=0.5 foo=2 | b: acc=0.7 foo=2.5", " (a) acc: 0.5, (b) acc: 0.7"]
)
def test_a_label_that_is_printed_twice_below_headings_has_theirs(line: str, printed: str) -> None:
    found = receipt_of("".join(line.format(n, 4 - n / 50, printed) for n in range(40)))
    others = found["summary"]["other_metrics"]
    assert (others["a/acc"]["last"], others["b/acc"]["last"], others["b/acc"]["record_count"]) == (0.5, 0.7, 40)
    assert found["derivation"]["cells"]["dropped"]["count"] == 0


def test_one_heading_twice_parts_nothing() -> None:
    found = receipt_of("".join(NANOGPT.format(n, 4 - n / 50, " [a] acc=0.5 acc=0.7") for n in range(40)))
    assert found["derivation"]["cells"]["dropped"] == {"count": 80, "by_key": {"acc": 80}}


def test_places_in_source_files_bars_and_what_is_read_are_no_cells() -> None:
    text = "".join(NANOGPT.format(n, 4 - n / 50, f" [model.py:112] Training: {n}%|### | at 10:20:30") for n in range(40))
    found = receipt_of(text)
    assert found["summary"]["other_metrics"] == {}
    assert found["derivation"]["cells"]["read"]["by_key"] == {"step": 40, "loss": 40, "step_time": 40, "mfu": 40}


def test_what_an_evaluation_prints_more_is_its_own() -> None:
    text = (ROOT / "fixtures/logs/mmcv/epochs-cpu.log").read_text("utf-8")
    others = receipt_of(text)["summary"]["other_metrics"]
    assert others["acc"]["record_count"] == 30 and others["eval/acc"]["record_count"] == 6


def test_a_loss_that_vanished_is_told_and_no_other_metric_is_shown_as_it() -> None:
    text = "".join(MEGATRON.format(n, 4 - n / 50, "").replace("lm loss:", "renamed thing:") for n in range(10, 500, 10))
    text += " validation loss at iteration 490 | lm loss value: 3.9E+00 | lm loss PPL: 4.9E+01 | \n"
    found = receipt_of(text)
    assert "loss" not in found["summary"]["metrics"] and found["summary"]["metrics"]["val_loss"]["last"] == 3.9
    assert found["summary"]["other_metrics"]["renamed thing"]["record_count"] == 49
    assert [problem["kind"] for problem in found["derivation"]["problems"]["first"]] == ["loss_missing"]
    assert not written(text, "run.log", lambda path: produce(Request(path)).clean)


PIECES = st.sampled_from(
    [b"a", b"loss", b"_x.y", b" ", b"  ", b"=", b":", b": ", b'"', b"'", b"\t", b"1", b"-2.5e3", b".5", b"1,234", b"nan", b"inf",
     b"%|", b"%", b"GB", b"it/s", b",", b"|", b"(s)", b"-", b"@", b"#", b"/", b"{", b"}", b"\xc3\xa9", b"train.py", b"\n"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map(b"".join), st.integers(0, 20))
def test_labels_before_numbers_are_all_labels_there_are(record: bytes, start: int) -> None:
    wanted = [found.span() for found in labelled._LABELLED.finditer(record, start)]
    for few in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(labelled, "_FEW", few)
            assert [found.span() for found in labelled._find_labelled(record, start)] == wanted


@pytest.mark.parametrize("line", [NANOGPT, MEGATRON, GENERIC])
@pytest.mark.parametrize(
    ("more", "kept"),
    [
        (" device='cuda:0'", {}),
        (" x=tensor(0.5, device='cuda:1')", {}),
        (" speed=~23.6 samples/s events=3", {"events": 3}),
        (" 12.5 it/s queue: 2", {"queue": 2}),
    ],
)
def test_a_device_and_a_unit_are_no_labels(line: str, more: str, kept: dict[str, float]) -> None:
    found = receipt_of("".join(line.format(n, 5 - n / 10, more) for n in range(1, 12)))["summary"]["other_metrics"]
    plain = receipt_of("".join(line.format(n, 5 - n / 10, "") for n in range(1, 12)))["summary"]["other_metrics"]
    assert {name: series["last"] for name, series in found.items() if name not in plain} == kept


@pytest.mark.parametrize("more", [" eta: 1 day, 5:23:56", " left=2 days, 0:10:00"])
def test_a_time_with_days_is_no_number_of_days(more: str) -> None:
    found = receipt_of("".join(GENERIC.format(n, 5 - n / 10, more) for n in range(1, 12)))["summary"]["other_metrics"]
    assert found == {}


@pytest.mark.parametrize(
    "form",
    [
        "Train({}) Val({}) Test({})",
        "Train: {} | Val: {} | Test: {}",
        "[Train] {} [Val] {} [Test] {}",
        "Train[{}], Val[{}], Test[{}]",
    ],
)
def test_each_heading_is_that_of_all_figures_behind_it(form: str) -> None:
    """The first figure behind a bracket had the heading before it: a validation's figure under the name of the training."""
    line = "step {0}/40 loss={1:.4f} " + form.format(*(f"f1=0.{n}{{0}} gap=0.{n}5{{0}}" for n in (1, 2, 3))) + "\n"
    text = "".join(line.format(n, 5 - n / 10) for n in range(11, 30))
    found = receipt_of(text)["summary"]["other_metrics"]
    assert {name: series["last"] for name, series in found.items()} == {
        f"{head}/{name}": float(f"0.{n}{middle}29")
        for n, head in enumerate(("Train", "Val", "Test"), 1)
        for name, middle in (("f1", ""), ("gap", 5))
    }


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ("Retrying (Retry(total=237, connect=240, read=237, redirect=240, status=240)) after connection broken", set()),
        (" acc=0.5", {"acc"}),
    ],
)
def test_what_another_writer_prints_right_behind_a_bar_is_no_figure_of_it(more: str, kept: set[str]) -> None:
    bar = "{0:3d}%|####      | {0}/100 [00:07<00:11,  1.34it/s, loss={1:.3f}]{2}\n"
    found = receipt_of("".join(bar.format(n, 5 - n / 50, more if n == 50 else "") for n in range(1, 101)))
    assert found["summary"]["metrics"]["loss"]["record_count"] == 100
    assert found["summary"]["other_metrics"].keys() == kept


BARS = [
    "Training:  49%|████▉     | {n}/640 [05:12<05:28,  1.00it/s, loss=0.5{n}, acc={acc}]",
    "Epoch 1/3:  49%|####      | {n}/640 [05:12<05:28,  1.00it/s, acc={acc}, loss=0.5{n}]",
    "Epoch 2:  49%|####      | {n}/640 [05:12<05:28,  1.00it/s, loss=0.5{n}, train_acc={acc}, lr=1e-4]",
]


@pytest.mark.parametrize("bar", BARS)
@pytest.mark.parametrize(("form", "factor"), [("{:.2f}%", 0.01), ("{:.1f}%", 0.01), ("{:.2f}", 1)])
def test_a_percentage_in_a_bar_is_a_ratio(bar: str, form: str, factor: float) -> None:
    log = "\n".join(bar.format(n=n, acc=form.format(70 + n / 10)) for n in range(10, 60)) + "\n"
    receipt = receipt_of(log)
    found = receipt["summary"]["other_metrics"]["train_accuracy"]
    assert (found["first"], found["last"]) == pytest.approx((71 * factor, 75.9 * factor))
    assert found["record_count"] == 50
    assert not [problem for problem in receipt["derivation"]["problems"] if "unreadable" in str(problem)]
