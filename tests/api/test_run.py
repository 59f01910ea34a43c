"""``read`` and ``read_all``: the receipt of the command, its metrics, and its records one by one."""

import builtins
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import receipt_cli
from tests.cli.conftest import ROOT, Invoke
from tests.tools.fields import AS_ITEM

matplotlib.use("agg")
LOGS = ROOT / "fixtures" / "logs"
RANKS = ROOT / "fixtures" / "runs" / "hf-trainer-torchrun"
FIVE = {
    "nanochat": LOGS / "nanochat" / "speedrun-2025-10.log",
    "hf-trainer": LOGS / "hf-trainer" / "diverged-nan-v5.log",
    "megatron-lm": min((LOGS / "megatron-lm").glob("*.log")),
    "keras": min((LOGS / "keras").glob("*.log")),
    "torchtitan": min((LOGS / "torchtitan").glob("*.log")),
    "several files": RANKS,
}
FIGURES = ("window", "scope", "definition", "record_count", "nonfinite_count", "first", "last", "min", "max", "mean", "median")


def iterations(count: int, loss: float) -> str:
    head = f"number of parameters: 0.{int(loss)}1M\n"
    return head + "".join(f"iter {n}: loss {loss - n / 10:.4f}, time 21.00ms, mfu 2.00%\n" for n in range(count))


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    path = tmp_path / "queue.log"
    path.write_text(iterations(6, 4.0) + iterations(9, 5.0) + iterations(7, 6.0))
    return path


@pytest.fixture(params=FIVE.values(), ids=FIVE)
def log(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def test_the_receipt_is_that_of_the_command(log: Path, invoke: Invoke) -> None:
    assert receipt_cli.read(log).receipt.to_dict() == invoke("parse", "--json", log).document


def test_every_field_of_the_receipt_is_an_attribute(log: Path) -> None:
    receipt = receipt_cli.read(log).receipt
    seen = 0
    places = [(receipt, receipt.to_dict())]
    while places:
        view, plain = places.pop()
        assert view.to_dict() == plain and list(view) == list(plain)
        for name, value in plain.items():
            found = view[name] if name in AS_ITEM else getattr(view, name)
            seen += 1
            if isinstance(value, dict):
                places.append((found, value))
            elif isinstance(value, list):
                places += [(a, b) for a, b in zip(found, value, strict=True) if isinstance(b, dict)]
            else:
                assert found == value
    assert seen > 150


def test_the_metrics_are_those_of_the_receipt(log: Path) -> None:
    run = receipt_cli.read(log)
    summary = run.receipt.to_dict()["summary"]
    for name, metric in run.metrics.items():
        of = {"reported": "metrics", "derived": "derived", "other": "other_metrics"}[metric.source]
        statistic = summary[of][name.removeprefix("other.") if of == "other_metrics" else name]
        assert {figure: getattr(metric, figure) for figure in FIGURES} == {figure: statistic[figure] for figure in FIGURES}
        assert metric.id == statistic.get("id") and metric.name == name
    assert {*summary["metrics"], *summary["derived"]} <= set(run.metrics)
    assert sum(metric.source == "other" for metric in run.metrics.values()) == len(summary["other_metrics"])


def test_a_metric_has_its_unit_and_headline() -> None:
    metrics = receipt_cli.read(FIVE["nanochat"]).metrics
    assert (metrics["loss"].unit, metrics["loss"].headline) == ("1", metrics["loss"].last)
    rate = metrics["tokens_per_s"]
    assert (rate.unit, rate.window, rate.headline) == ("token/s", "steady", rate.median)
    assert metrics.get("loss_of_nobody") is None


def test_the_records_are_the_rows_of_the_series(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    series = tmp_path / "series.parquet"
    assert invoke("parse", log, "--series", series).code == 0
    rows = parquet.read_table(series).to_pylist()
    run = receipt_cli.read(log)
    records = list(run.records())
    assert len(records) == len(rows) > 5
    for record, row in zip(records, rows, strict=True):
        known = row["step"], row["line_number"], row["rank"], row["phase_index"], row["phase"], row["event"]
        assert record[:6] == known
        assert record.metrics == {name: row[name] for name in run.columns if row[name] is not None}
        assert list(record.nonfinite) == row["nonfinite"]
    assert isinstance(run.records().__next__(), receipt_cli.Record)


def test_records_come_in_chunks_and_say_what_is_not_finite(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    row = "{{'loss': {}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {:.4f}}}\n"
    log.write_text("".join(row.format("nan" if n % 3000 == 7 else f"{n:.4f}", n / 9000) for n in range(9000)))
    run = receipt_cli.read(log)
    bad = [record.line for record in run.records() if record.nonfinite == ("loss",)]
    assert bad == [8, 3008, 6008]
    losses = [record.metrics["loss"] for record in run.records() if not record.nonfinite]
    assert losses == [n for n in range(9000) if n % 3000 != 7]
    assert run.metrics["loss"].nonfinite_count == 3


def test_records_may_print_no_metric(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("".join(f"{{'loss': nan, 'grad_norm': inf, 'epoch': {n}.0}}\n" for n in range(1, 9)))
    run = receipt_cli.read(log)
    kept = [({"other.epoch": float(n)}, ("loss", "grad_norm")) for n in range(1, 9)]
    assert [(record.metrics, record.nonfinite) for record in run.records()] == kept
    assert len(run.frame("loss")) == 0 and len(run.frame()) == 8
    assert [axes.lines[:] for axes in run.plot("loss")] == [[]]


def test_all_runs_of_a_log(queue: Path, invoke: Invoke) -> None:
    runs = receipt_cli.read_all(queue)
    printed = [json.loads(line) for line in invoke("parse", "--all-runs", "--json", queue).stdout.splitlines()]
    assert [run.receipt.to_dict() for run in runs] == printed
    assert [run.metrics["loss"].first for run in runs] == [4.0, 5.0, 6.0]
    assert [len(list(run.records())) for run in runs] == [6, 9, 7]
    last = receipt_cli.read(queue)
    assert last.receipt == runs[-1].receipt
    assert "the log has 3 runs" in last.notes[0]


def test_files_of_several_runs(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"job{number}.log").write_text(iterations(5 + number, 4.0 + number))
    files = sorted(tmp_path.glob("*.log"))
    assert [run.receipt.summary.steps.record_count for run in receipt_cli.read_all(files) if run.receipt.summary] == [5, 6, 7]
    with pytest.raises(receipt_cli.UsageError, match="runs"):
        receipt_cli.read(files)


def test_files_of_one_run_have_ranks(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"rank{rank}.log").write_text(iterations(8, 4.0))
    for source in (tmp_path, str(tmp_path), [tmp_path / "rank0.log", str(tmp_path / "rank1.log")], (os.fsencode(tmp_path),)):
        run = receipt_cli.read(source)  # type: ignore[arg-type]
        assert [file.name for file in run.receipt.derivation.log.files or ()] == ["rank0.log", "rank1.log"]


def test_options_are_those_of_the_command(tmp_path: Path, invoke: Invoke) -> None:
    header = tmp_path / "header.json"
    header.write_bytes(invoke("header").stdout)
    artefact = tmp_path / "trace.json"
    artefact.write_text("{}")
    log = FIVE["nanochat"]
    told = ("--name", "a", "--lane", "h100", "--preset", "d20", "--exit-code", "0", "--wall", "3h", "--grammar", "nanochat")
    printed = invoke("parse", "--json", log, *told, "--attach", f"trace={artefact}", "--header", header).document
    run = receipt_cli.read(
        log, name="a", lane="h100", preset="d20", exit_code=0, wall=10800, grammar="nanochat",
        attachments={"trace": str(artefact)}, header=header,
    )  # fmt: skip
    assert run.receipt.to_dict() == printed
    assert receipt_cli.read(log, wall="3h", attachments=[f"trace={artefact}"]).receipt.attachments[0].kind == "trace"
    here = receipt_cli.read(log, here=ROOT).receipt
    assert here.header.git.commit is not None and here.header.collected_at is not None
    assert receipt_cli.read(log).receipt.header.git.commit is None


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    receipt_cli.read(FIVE["nanochat"], progress=lambda done, size: seen.append((done, size)))
    size = FIVE["nanochat"].stat().st_size
    assert seen[-1] == (size, size)


@pytest.fixture
def bucket() -> str:
    import fsspec

    system = fsspec.filesystem("memory")
    for rank in range(2):
        with system.open(f"/bucket/job/rank{rank}/train.log", "wb") as file:
            file.write(iterations(8, 4.0).encode())
    with system.open("/bucket/empty.log", "wb"):
        pass
    return "memory://bucket"


def test_a_url_is_read_as_the_file_is(bucket: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(iterations(8, 4.0))
    run = receipt_cli.read(f"{bucket}/job/rank0/train.log")
    assert run.receipt == receipt_cli.read(tmp_path / "train.log").receipt
    assert run.source == f"{bucket}/job/rank0/train.log"
    assert len(list(run.records())) == 8
    both = receipt_cli.read(f"{bucket}/job").receipt
    assert [file.name for file in both.derivation.log.files or ()] == ["rank0/train.log", "rank1/train.log"]
    assert both == receipt_cli.read([f"{bucket}/job/rank0/train.log", f"{bucket}/job/rank1/train.log"]).receipt


def test_what_is_wrong_with_a_url_names_it(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(receipt_cli.InputError) as raised:
        receipt_cli.read(f"{bucket}/empty.log")
    assert raised.value.where == "memory:///bucket/empty.log"
    for source in (f"{bucket}/nowhere.log", "gopher://example.org/a.log", [f"{bucket}/empty.log", tmp_path]):
        with pytest.raises(receipt_cli.ReceiptError):
            receipt_cli.read(source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("missing.log", None, receipt_cli.InputError),
        ("empty.log", b"", receipt_cli.InputError),
        ("prose.log", b"nothing that a trainer prints\n" * 50, receipt_cli.GrammarChoiceError),
        ("zero.log", bytes(4096), receipt_cli.ReceiptError),
        ("broken.log.gz", b"\x1f\x8b\x08\x00garbage", receipt_cli.InputError),
    ],
)
def test_a_bad_log_is_a_receipt_error(tmp_path: Path, name: str, content: bytes | None, error: type[Exception]) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    for read in (receipt_cli.read, receipt_cli.read_all):
        with pytest.raises(error) as raised:
            read(tmp_path / name)
        assert isinstance(raised.value, receipt_cli.ReceiptError) and raised.value.message


@pytest.mark.parametrize(
    "options",
    [
        {"grammar": "nobody"},
        {"grammar": "nobody@v9"},
        {"exit_code": 10**12},
        {"wall": -3},
        {"wall": float("nan")},
        {"wall": "tomorrow"},
        {"name": "a\x00b\ud800"},
        {"attachments": ["nonsense"]},
        {"attachments": {"trace": "/no/such/file"}},
        {"header": "/no/such/header.json"},
    ],
    ids=str,
)
def test_a_bad_option_is_a_receipt_error(options: Any) -> None:
    with pytest.raises(receipt_cli.ReceiptError):
        receipt_cli.read(FIVE["nanochat"], **options)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="no option 'gramar'"):
        receipt_cli.read(FIVE["nanochat"], gramar="nanochat")  # type: ignore[call-arg]
    for source in ([], "a\x00b.log"):
        with pytest.raises(receipt_cli.ReceiptError):
            receipt_cli.read(source)


def test_a_log_that_nobody_recognises_gives_its_receipt_to_whoever_asks(tmp_path: Path, invoke: Invoke) -> None:
    log = tmp_path / "prose.log"
    log.write_text("Killed\n")
    run = receipt_cli.read(log, unrecognised=True)
    assert run.receipt.to_dict() == invoke("parse", "--json", log).document
    assert run.metrics == {} and list(run.records()) == [] and run.columns == () and len(run.frame()) == 0
    with pytest.raises(receipt_cli.UsageError, match="no record prints the metric 'loss'"):
        run.plot()


class TestFrame:
    def test_it_holds_the_records(self, log: Path) -> None:
        run = receipt_cli.read(log)
        frame = run.frame()
        assert list(frame) == ["step", "line", "rank", "phase_index", "phase", "event", *run.columns]
        for record, (_, row) in zip(run.records(), frame.iterrows(), strict=True):
            told = [None if pd.isna(row[name]) else row[name] for name in list(frame)[:6]]
            assert told == list(record[:6])
            assert {name: row[name] for name in run.columns if not pd.isna(row[name])} == record.metrics

    def test_chosen_metrics_leave_out_the_other_records(self) -> None:
        run = receipt_cli.read(FIVE["nanochat"])
        frame = run.frame("val_bpb")
        assert list(frame)[6:] == ["val_bpb"]
        assert frame["val_bpb"].tolist() == [r.metrics["val_bpb"] for r in run.records() if "val_bpb" in r.metrics]
        assert 0 < len(frame) < len(run.frame("val_bpb", "loss")) <= len(run.frame())

    def test_without_pandas_it_is_arrow(self, log: Path, without: Callable[..., None]) -> None:
        run = receipt_cli.read(log)
        frame = run.frame()
        without("pandas")
        table = run.frame()
        assert isinstance(table, pa.Table) and table.column_names == list(frame)
        for name in table.column_names:
            assert table[name].to_pylist() == [None if pd.isna(value) else value for value in frame[name].tolist()]
        assert table.schema.field("step").type == pa.int64()

    def test_without_both_the_error_says_what_to_install(self, without: Callable[..., None]) -> None:
        run = receipt_cli.read(FIVE["nanochat"])
        without("pandas", "pyarrow")
        with pytest.raises(receipt_cli.ReceiptError) as raised:
            run.frame()
        assert "receipt-cli[notebook]" in raised.value.try_

    def test_an_unknown_metric_is_an_error_that_names_the_known(self) -> None:
        with pytest.raises(receipt_cli.UsageError) as raised:
            receipt_cli.read(FIVE["nanochat"]).frame("lossy")
        assert "loss" in raised.value.why


class TestPlot:
    def test_a_metric_is_axes_with_its_curve(self) -> None:
        run = receipt_cli.read(FIVE["nanochat"])
        axes = run.plot("loss", "tokens_per_s")
        assert [each.get_ylabel() for each in axes] == ["loss", "tokens_per_s (token/s)"]
        frame = run.frame("loss")
        line = axes[0].lines[-1]
        mine = frame[frame["phase"] == line.get_label()] if len(axes[0].lines) > 1 else frame
        assert np.array_equal(line.get_xdata(), mine["step"].to_numpy(np.int64))
        assert np.array_equal(line.get_ydata(), mine["loss"].to_numpy())

    def test_names_are_no_mathematics(self, tmp_path: Path) -> None:
        log = tmp_path / "a.log"
        row = "{{'loss': 1.5, 'grad_norm': 1.0, 'learning_rate': 1e-05, '$\\\\frac$': {0}.5, 'epoch': {0}.0}}\n"
        log.write_text("".join(map(row.format, range(1, 9))))
        run = receipt_cli.read(log)
        names = [name for name in run.columns if "$" in name]
        assert names
        run.plot(*names)[0].figure.canvas.draw()

    def test_without_matplotlib_the_error_says_what_to_install(self, without: Callable[..., None]) -> None:
        run = receipt_cli.read(FIVE["nanochat"])
        without("matplotlib")
        with pytest.raises(receipt_cli.ReceiptError) as raised:
            run.plot()
        assert "receipt-cli[notebook]" in raised.value.try_


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let packages be ones that are not installed."""

    def hide(*packages: str) -> None:
        there = builtins.__import__

        def load(name: str, *rest: Any) -> Any:
            if name in packages:
                raise ImportError(f"No module named {name!r}")
            return there(name, *rest)

        monkeypatch.setattr(builtins, "__import__", load)

    return hide


class TestHtml:
    def test_it_shows_outcome_trainer_steps_and_metrics(self) -> None:
        run = receipt_cli.read(FIVE["nanochat"], name="d20")
        html = run._repr_html_()
        assert html == run.receipt._repr_html_()
        for text in ("<td>d20</td>", "<th>outcome</th>", "nanochat", "<th>loss (last)</th>", "<th>steps</th>"):
            assert text in html
        failed = receipt_cli.read(LOGS / "nanochat" / "base-2026-03-oom.log")
        assert "failed: cuda_oom" in failed._repr_html_()

    def test_a_run_without_steps_has_one(self, tmp_path: Path) -> None:
        log = tmp_path / "a.log"
        log.write_text("Killed\n")
        assert "not recognised" in receipt_cli.read(log, unrecognised=True)._repr_html_()

    def test_hostile_text_is_escaped(self) -> None:
        hostile = "</td><script>alert('x')</script>&<img src=x onerror=\"y\">\u202e"
        document = receipt_cli.read(FIVE["nanochat"]).receipt.to_dict()
        document["run"]["name"] = hostile
        document["header"]["software"]["trainer"] = hostile
        loss = document["summary"]["metrics"].pop("loss")
        document["summary"]["metrics"] = {hostile: loss}
        html = receipt_cli.Receipt(document)._repr_html_()
        tags = html.replace("<table>", "").replace("</table>", "")
        for tag in ("tr", "th", "td"):
            tags = tags.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
        assert "<" not in tags and ">" not in tags and '"' not in tags and "'" not in tags and "\u202e" not in html
        assert html.count("&lt;script&gt;") == 3


def test_a_run_says_what_it_is() -> None:
    text = repr(receipt_cli.read(FIVE["keras"]))
    assert str(FIVE["keras"]) in text and "loss" in text and len(text) < 1000


def test_a_program_without_a_guard_may_read(tmp_path: Path) -> None:
    """A library starts no process that nobody asked for."""
    program = tmp_path / "program.py"
    program.write_text(
        f"import os, receipt_cli\nos.fork = None\nprint(receipt_cli.read({str(FIVE['nanochat'])!r}).metrics['loss'].last)\n"
    )
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert float(done.stdout) == receipt_cli.read(FIVE["nanochat"]).metrics["loss"].last
