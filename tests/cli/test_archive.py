"""Who is who in an archive: paths, names and times of runs, every run of a log, and every path with its outcome."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.batch.coordinator import Batch, rederive
from receipt_cli.batch.discovery import Labels, moment, read_mapping, walk
from receipt_cli.batch.model import Manner
from receipt_cli.errors import InputError, UsageError
from receipt_cli.store.files import Store
from receipt_cli.store.flatten import RowFiles, read_row
from receipt_cli.store.index import keep_rows, open_store
from receipt_cli.store.places import Place, describe

from .conftest import ROOT, Invoke, tree
from .test_rederive import Here

LOGS = ROOT / "fixtures" / "logs"
TWO_RUNS = LOGS / "hf-trainer" / "nohup-two-runs-v5.log"
ONE_RUN = LOGS / "hf-trainer" / "crash-resumed-v5.log"


def derive(archive: Path, store: Path, manner: Manner | None = None, **templates: str) -> list[Any]:
    batch = Batch(store, Here(), manner=manner or Manner(), labels=Labels(templates))
    return list(rederive(walk([str(archive)]).logs, batch).reports)


def ask(store: Path, sql: str) -> list[tuple[Any, ...]]:
    return list(open_store(store).ask(sql).rows)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "archive"
    (folder / "gpt" / "a").mkdir(parents=True)
    (folder / "bert").mkdir()
    shutil.copy(TWO_RUNS, folder / "gpt" / "a" / "pair.log")
    shutil.copy(TWO_RUNS, folder / "bert" / "again.log")
    shutil.copy(ONE_RUN, folder / "bert" / "single.log")
    return folder


def test_every_run_of_a_log_has_a_receipt_a_path_and_a_name(archive: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    reports = {report.log.name: report for report in derive(archive, store)}
    assert {name: report.runs for name, report in reports.items()} == {
        "bert/again.log": 2, "bert/single.log": 1, "gpt/a/pair.log": 2
    }  # fmt: skip
    rows = ask(store, "SELECT name, name_source, log_path, log_path_count, run_number, run_count FROM runs ORDER BY name")
    assert rows == [
        ("again", "stem", "bert/again.log", 2, 2, 2),
        ("again.run1", "stem", "bert/again.log", 2, 1, 2),
        ("single", "stem", "bert/single.log", 1, 1, 1),
    ]
    assert ask(store, "SELECT path FROM paths WHERE run_id = log_sha256 ORDER BY ALL") == [
        ("bert/again.log",), ("bert/single.log",), ("gpt/a/pair.log",)
    ]  # fmt: skip
    runs = [json.loads(each.path.read_bytes())["derivation"].get("launches") for each in Store(store).receipts()]
    assert sorted(launch["used"] for launch in runs if launch) == [1, 2]
    assert ask(store, "SELECT count(*) FROM metrics JOIN runs USING (run_id)") == ask(store, "SELECT count(*) FROM metrics")


def test_order_and_earlier_batches_leave_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    derive(archive, tmp_path / "once", lane="{dir}")
    derive(archive, tmp_path / "twice")  # other labels first, which the later ones replace
    derive(archive, tmp_path / "twice", lane="{dir}")
    assert tree(tmp_path / "once") == tree(tmp_path / "twice")


def test_a_store_of_an_earlier_version_opens_and_gains_paths_and_runs(archive: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    derive(archive, old, Manner(all_runs=False))
    shutil.rmtree(old / "places")  # what an earlier version did not write
    shutil.rmtree(old / ".cache")
    before = tree(old)
    assert ask(old, "SELECT count(*), count(name), count(log_path) FROM runs") == [(2, 0, 0)]
    derive(archive, old)
    derive(archive, new)
    assert tree(old) == tree(new) and before.items() <= tree(old).items()


def test_runs_become_current_together_and_older_ones_are_history(archive: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    derive(archive, store.root)
    [log] = {receipt.log_sha256 for receipt in store.receipts() if receipt.run is not None}
    first, last = (json.loads(receipt.path.read_bytes()) for receipt in store.runs(log))
    last["run"]["lane"] = "renamed"
    assert store.add(last).change == "replaced"  # the earlier run goes with it
    assert [(receipt.run, receipt.generation) for receipt in store.runs(log)] == [(1, 2), (None, 2)]
    first["run"]["lane"] = "other"
    assert store.add_runs([first, last]).change == "replaced"
    assert [(receipt.run, receipt.generation) for receipt in store.runs(log)] == [(1, 3), (None, 3)]
    assert store.add_runs([first, last]).change == "unchanged"
    rows = ask(store.root, "SELECT is_current, count(*) FROM history GROUP BY ALL ORDER BY ALL")
    assert rows == [(False, 4), (True, 3)]
    leftover = store.runs(log)[-1].path  # a writer that was killed before it wrote the last run's receipt
    leftover.unlink()
    assert [receipt.generation for receipt in store.runs(log)] == [2, 2]


def test_templates_and_a_mapping_label_runs_that_their_receipts_do_not(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text("path,name,lane\nbert/*.log,,bert lane\ngpt/a/pair.log,the pair,\n")
    labels = Labels({"lane": "{dir}", "preset": "{parent}-{file}", "name": "{stem}"}, read_mapping(str(tmp_path / "map.csv")))
    pair, single = labels.place("gpt/a/pair.log.gz"), labels.place("bert/single.log")
    assert (pair.name, pair.lane, pair.preset) == ("pair", "gpt/a", "a-pair.log.gz")
    assert (single.lane, single.lane_source, single.name_source) == ("bert lane", "mapping", "template")
    assert labels.place("gpt/a/pair.log").name == "the pair"
    assert labels.place("top.log").lane is None  # the folder has no name
    captured = {"run": {"name": "own", "lane": None, "preset": None}, "derivation": {}}
    run, sources = describe(captured, [Place("x.log", "x", "lane of x", None, "stem", "template", None)])
    assert (run["name"], run["lane"], sources) == (
        "own", "lane of x", {"name": "receipt", "lane": "template", "preset": None}
    )  # fmt: skip
    for template in ("{nothing}", "{dir", "{}"):
        with pytest.raises(UsageError):
            Labels({"lane": template})
    (tmp_path / "bad.csv").write_text("file,lane\n")
    with pytest.raises(InputError, match="columns path"):
        read_mapping(str(tmp_path / "bad.csv"))


def test_every_path_has_an_outcome_with_a_reason(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    (archive / "nul.log").write_bytes(bytes(3 << 20) + ONE_RUN.read_bytes())
    (archive / "README.log").write_bytes(ONE_RUN.read_bytes())
    receipt = invoke("parse", ONE_RUN, "--json").stdout
    (archive / "one.receipt.json").write_bytes(receipt)
    (archive / "two.out").write_bytes(receipt)
    (archive / "notes.md").write_text("notes")
    (archive / "run.txt").write_text("#!/bin/sh\n")
    (archive / "model.out").write_bytes(bytes(range(256)) * 64)
    (archive / ".git").mkdir()
    (archive / "gone.log").symlink_to("nowhere")
    os.mkfifo(archive / "pipe.log")
    os.utime(archive / "bert" / "single.log", (0, 0))
    store = archive / "receipts"
    given = ("rederive", archive, "--store", store, "--workers", "1", "--since", "2001-01-01")
    found = {line["path"]: line for line in map(json.loads, invoke(*given, "--json").stdout.splitlines())}
    assert list(found) == sorted(found)
    assert {path: line["error"] for path, line in found.items() if line["outcome"] == "left_out"} == {
        ".git/": "hidden", "bert/single.log": "older", "gone.log": "link", "model.out": "binary", "notes.md": "name",
        "one.receipt.json": "receipt", "pipe.log": "special", "run.txt": "script", "two.out": "receipt",
    }  # fmt: skip
    assert {"nul.log", "README.log", "bert/again.log"} <= {path for path, line in found.items() if line["receipt"]}
    again = invoke(*given, "--list-left-out").stdout.decode()
    assert "left out (receipt)  two.out" in again and "left out (store)  receipts/" in again
    assert re.search(r"left out: a receipt: receipt store add +2\n", again)
    named = invoke("store", "build", archive / "two.out", "--store", tmp_path / "other", "--list-left-out")
    assert "left out (receipt)  two.out" in named.stdout.decode()


@pytest.mark.parametrize(
    ("text", "want"), [("1970-01-02", 86400), ("1970-01-01T01:00:00+01:00", 0), ("2h", 2800), ("1d", -76400)]
)
def test_since(text: str, want: float) -> None:
    assert moment(text, 10000.0) == want
    with pytest.raises(UsageError):
        moment("yesterday", 0)


def test_a_grammar_reads_the_archive_and_series_are_written_for_every_run(archive: Path, tmp_path: Path) -> None:
    derive(archive / "gpt", tmp_path / "store", Manner(grammar="hf-trainer", series=True))
    [log] = {receipt.log_sha256 for receipt in Store(tmp_path / "store").receipts()}
    names = sorted(path.name for path in (tmp_path / "store" / "series").rglob("*.parquet"))
    assert names == [f"{log}.parquet", f"{log}.run1.parquet"]
    assert ask(tmp_path / "store", "SELECT DISTINCT grammar_id FROM runs") == [("hf-trainer",)]
    last = json.loads(Store(tmp_path / "store").runs(log)[-1].path.read_bytes())
    assert last["derivation"]["options"]["grammar"].startswith("hf-trainer@v")


def test_a_question_after_a_batch_reads_no_receipt_again(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, read = tmp_path / "store", list[str]()
    derive(archive, store)

    def counted(files: RowFiles) -> str:
        read.append(files.name)
        return read_row(files)

    monkeypatch.setattr("receipt_cli.store.index.read_row", counted)
    first = ask(store, "FROM history ORDER BY ALL")
    assert len(first) == 3 and read == []
    assert not list((store / ".cache" / "rows").iterdir())  # the index has them
    shutil.rmtree(store / ".cache")
    assert ask(store, "FROM history ORDER BY ALL") == first and len(read) == 3


def test_kept_rows_that_are_damaged_or_of_another_version_are_skipped(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    derive(archive, store)
    [kept] = (store / ".cache" / "rows").iterdir()
    sound = kept.read_bytes()
    want = ask(store, "FROM history ORDER BY ALL")
    for damaged in (b"", sound[:-1], sound[:10], b"\0" * 20, b"\xff" * 500, sound[:60] + b"\0" + sound[61:]):
        shutil.rmtree(store / ".cache")
        kept.parent.mkdir(parents=True)
        kept.write_bytes(damaged)
        assert ask(store, "FROM history ORDER BY ALL") == want
    shutil.rmtree(store / ".cache")
    monkeypatch.setattr("receipt_cli.store.index.fingerprint", lambda: "of another version")
    keep_rows(Store(store), "", [json.loads(receipt.path.read_bytes()) for receipt in Store(store).receipts()])
    assert list(kept.parent.iterdir())
    monkeypatch.undo()
    assert ask(store, "FROM history ORDER BY ALL") == want


def test_a_kept_row_is_of_the_file_that_the_batch_wrote(archive: Path, tmp_path: Path) -> None:
    store, copy = tmp_path / "store", tmp_path / "copy"
    derive(archive, store)
    shutil.copytree(store, copy)  # with its cache and the times of change in content
    for root in (store, copy):
        path = next(Store(root).receipts()).path
        times = path.stat()
        path.write_bytes(path.read_bytes().replace(b'"receipt/', b'"RECEIPT/'))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert ask(root, "SELECT count(*) FROM passed_over") == [(1,)]
