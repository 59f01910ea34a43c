"""``receipt report``, ``receipt plot`` and ``receipt parse --html`` through the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.report_store import write_store
from tests.cli.conftest import Invoke


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "store"
    write_store(folder, 3, runs=12)
    return folder


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text("".join(f"iter {n}: loss {4 - n / 100:.4f}, time 21.00ms, mfu 2.00%\n" for n in range(50)))
    return path


def data_of(page: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.read_text().partition('id="data">')[2].partition("</script>")[0])
    return found


def test_a_store_gives_one_file_and_the_same_bytes_again(store: Path, tmp_path: Path, invoke: Invoke) -> None:
    done = invoke("report", store, "-o", tmp_path / "a.html", "--title", "Our <runs>")
    assert (done.code, done.stdout) == (0, b"")
    assert "a.html: 48 runs" in done.stderr
    assert invoke("report", store, "-o", tmp_path / "b.html", "--title", "Our <runs>").code == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert "<title>Our &lt;runs&gt; · receipt</title>" in (tmp_path / "a.html").read_text()
    report = data_of(tmp_path / "a.html")
    assert (len(report["details"]), report["quarantined"], len(report["lanes"])) == (48, 1, 4)


def test_no_store_and_no_place_to_write_have_their_exit_codes(store: Path, tmp_path: Path, invoke: Invoke) -> None:
    assert invoke("report", tmp_path / "none", "-o", tmp_path / "a.html").code == 3
    assert invoke("report", store, "-o", tmp_path / "none" / "a.html").code == 6
    assert invoke("report", store, "-o", tmp_path / "a.html", "--series", tmp_path / "none").code == 3


def test_an_empty_store_is_a_report_of_nothing(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "store").mkdir()
    assert invoke("report", tmp_path / "store", "-o", tmp_path / "a.html").code == 0
    assert data_of(tmp_path / "a.html")["details"] == []


def test_curves_come_from_the_series_of_the_same_log(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    pytest.importorskip("duckdb")
    store = tmp_path / "store"
    (store / "series").mkdir(parents=True)
    (store / "series" / "other.parquet").write_bytes(b"PAR1")
    assert invoke("parse", log, "-o", tmp_path / "r.json", "--series", store / "series" / "any.parquet").code == 0
    assert invoke("store", "add", store, tmp_path / "r.json").code == 0
    done = invoke("report", store, "-o", tmp_path / "a.html")
    assert "other.parquet is skipped" in done.stderr
    report = data_of(tmp_path / "a.html")
    curves = {report["texts"][curve[1]]: curve[2:] for curve in report["details"][0]["curves"]}
    assert curves["loss"][0] == 50
    assert curves["loss"][1][:4] == [0, 4, 1, 3.99]


def test_the_page_of_a_log_has_its_curves(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    done = invoke("parse", log, "--html", tmp_path / "run.html", "--json")
    assert done.code == 0 and done.document["summary"]["steps"]["record_count"] == 50
    report = data_of(tmp_path / "run.html")
    assert report["kind"] == "run"
    assert "loss" in [report["texts"][curve[1]] for curve in report["details"][0]["curves"]]
    assert invoke("parse", log, "--html", tmp_path / "all.html", "--all-runs").code == 2


def test_the_page_of_a_log_that_nobody_knows_says_what_looks_like_metrics(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "odd.log").write_text("hello\nworld\n" * 10)
    done = invoke("parse", tmp_path / "odd.log", "--html", tmp_path / "run.html")
    assert done.code == 4
    assert data_of(tmp_path / "run.html")["drift"][0]["kind"] == "unrecognised"


def test_a_log_is_plotted_and_a_receipt_says_that_it_has_no_curves(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    shown = invoke("plot", log, "-m", "loss", "--height", "5")
    assert shown.code == 0
    lines = shown.stdout.decode().splitlines()
    assert lines[0].split() == ["loss", "last", "3.510"]
    assert len(lines) == 8
    assert invoke("parse", log, "-o", tmp_path / "r.json").code == 0
    ranged = invoke("plot", tmp_path / "r.json")
    assert ranged.code == 0
    assert "statistics, not records" in ranged.stderr and "F first" in ranged.stdout.decode()


def test_runs_are_drawn_over_one_another(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    other, receipt = tmp_path / "other.log", tmp_path / "r.json"
    other.write_bytes(log.read_bytes().replace(b"loss 3", b"loss 5"))
    assert invoke("parse", log, "-o", receipt).code == 0
    shown = invoke("plot", log, other, receipt, "-m", "loss", "--height", "5")
    assert shown.code == 0, shown.stderr
    lines = shown.stdout.decode().splitlines()
    assert len(lines) == 1 + 5 + 2 + 3
    assert "A" in "".join(lines[1:6]) and "B" in "".join(lines[1:6])
    assert [line.split()[0] for line in lines[-3:]] == ["A", "B", "C"]
    assert "other.log  last 5.510" in lines[-2]
    assert "not drawn: a receipt has no records" in lines[-1]
    assert b"\x1b" not in shown.stdout
    colored = invoke("plot", log, other, "-m", "loss", "--color", "always").stdout
    assert b"\x1b[36m" in colored and b"\x1b[33m" in colored


def test_runs_of_a_store_are_drawn_by_name(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    logs = [tmp_path / "logs" / name for name in ("first.log", "second.log")]
    logs[0].parent.mkdir()
    logs[0].write_bytes(log.read_bytes())
    logs[1].write_bytes(log.read_bytes() + b"\n")
    assert invoke("store", "build", tmp_path / "logs", "--store", tmp_path / "store").code == 0
    shown = invoke("plot", "first", "second", "--store", tmp_path / "store", "-m", "loss")
    assert shown.code == 0 and shown.stdout.decode().count("last 3.510") == 2


@pytest.mark.parametrize(("axis", "word"), [("tokens", "tokens are unknown"), ("time", "1.00 s")])
def test_an_axis_of_time_or_tokens(log: Path, invoke: Invoke, axis: str, word: str) -> None:
    one = invoke("plot", log, "-m", "loss", "--align", axis)
    two = invoke("plot", log, log, "-m", "loss", "--align", axis)
    assert two.code == 0
    if axis == "tokens":
        assert one.code == 2 and word in one.stderr
        assert two.stdout.decode().count("not drawn: the run's tokens are unknown") == 2
    else:
        assert one.code == 0 and one.stdout.decode().rstrip().endswith(word)


def test_too_many_runs_are_refused(log: Path, invoke: Invoke) -> None:
    done = invoke("plot", *[log] * 13)
    assert done.code == 2 and "at most 12" in done.stderr
    assert invoke("plot", log, log, "-m", "los").stderr.count("no run has the metric 'los'") == 1


def test_a_metric_that_the_run_has_not_is_told_with_those_it_has(log: Path, invoke: Invoke) -> None:
    done = invoke("plot", log, "-m", "los")
    assert done.code == 2
    assert "it has loss" in done.stderr and "--metric loss" in done.stderr
