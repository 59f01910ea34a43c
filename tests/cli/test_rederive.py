"""``receipt store build``: an archive in, a store out; interrupted, damaged, repeated and from several sides at once."""

import contextlib
import gzip
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.batch.coordinator import Batch, rederive
from receipt_cli.batch.discovery import walk
from receipt_cli.batch.model import Lost
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.receipts.production import Request, produce

from .conftest import ROOT, Done, Invoke, tree

LOGS = ROOT / "fixtures" / "logs"
PICKED = ("hf-trainer/crash-resumed-v5.log", "hf-trainer/bar-merged-v5.log", "accelerate/no-trainer-1.15.log")
Lines = dict[str, dict[str, Any]]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Three logs, long settled: what was written a moment ago may still change, and is read again."""
    folder = tmp_path / "archive"
    for name in PICKED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(LOGS / name, folder / name)
    return folder


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the archive count as old."""
    monkeypatch.setattr("receipt_cli.batch.discovery.SETTLED_S", -1e9)


def lines(done: Done) -> Lines:
    return {line["path"]: line for line in map(json.loads, done.stdout.splitlines())}


def outcomes(done: Done) -> dict[str, str]:
    return {path: line["outcome"] for path, line in lines(done).items()}


def run(invoke: Invoke, archive: Path, store: Path, *more: str) -> Done:
    return invoke("store", "build", archive, "--store", store, "--json", "--workers", "1", *more)


def test_every_log_gets_the_receipt_that_parse_gives(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    done = run(invoke, archive, tmp_path / "store")
    assert (done.code, done.stderr) == (0, "")
    assert list(lines(done)) == sorted(PICKED)
    for name, line in lines(done).items():
        data = (tmp_path / "store" / line["receipt"]).read_bytes()
        assert data == canonical_bytes(produce(Request(str(archive / name))).document)
        assert not has_errors(validate_bytes(data, name))
        assert (line["outcome"], line["recognised"], line["derived"]) == ("written", True, True)
        assert line["log_sha256"] == hashlib.sha256((archive / name).read_bytes()).hexdigest()
    assert len(tree(tmp_path / "store" / "receipts")) == 3


def test_people_are_told_how_many_and_how_fast(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    (archive / "empty.log").touch()
    done = invoke("store", "build", archive, "--store", tmp_path / "store", "--workers", "1")
    text = done.stdout.decode()
    assert done.code == 3
    assert "3 logs derived" in text and "logs/s" in text and "MB/s" in text
    assert "written      3" in text and "quarantined  1" in text
    assert "empty.log" in text and "the log is empty" in text


@pytest.mark.usefixtures("settled")
def test_a_store_is_brought_up_to_date(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"

    def again(*options: str) -> tuple[set[str], list[str]]:
        """Return the logs that were derived again, and all outcomes."""
        done = run(invoke, archive, store, *options)
        return {path for path, line in lines(done).items() if line["derived"]}, sorted(outcomes(done).values())

    run(invoke, archive, store)
    files, want = {path: path.stat() for path in store.rglob("*")}, tree(store)
    assert again() == (set(), ["unchanged"] * 3)  # and reads and writes nothing
    assert {p: (s.st_ino, s.st_mtime_ns) for p, s in files.items()} == {
        path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in store.rglob("*")
    }
    assert again("--again") == (set(PICKED), ["unchanged"] * 3)
    shutil.rmtree(store / ".cache")
    assert again() == (set(PICKED), ["unchanged"] * 3)  # without its cache it loses nothing
    (store / min(path for path in want if path.startswith("receipts"))).unlink()
    assert again()[1] == ["unchanged", "unchanged", "written"]
    assert tree(store) == want
    (archive / "new.log").write_bytes((archive / PICKED[0]).read_bytes() + b"one more line\n")
    shutil.move(archive / PICKED[1], archive / "moved.log")
    assert again() == ({"new.log"}, ["unchanged"] * 3 + ["written"])


def test_neither_order_nor_workers_nor_packing_change_the_store(process: Invoke, archive: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    for name in PICKED:
        (packed / name).parent.mkdir(parents=True, exist_ok=True)
        (packed / f"{name}.gz").write_bytes(gzip.compress((archive / name).read_bytes()))
    parts = [archive / "hf-trainer", archive / "accelerate"]
    stores = []
    one, two = ("--workers", "1"), ("--workers", "2")
    for number, given in enumerate(([*parts, *one], [*reversed(parts), *two], [packed, *two])):
        stores.append(tmp_path / f"store{number}")
        assert process("store", "build", *given, "--store", stores[-1]).code == 0
    assert tree(stores[0]) == tree(stores[1])
    assert tree(stores[0] / "receipts") == tree(stores[2] / "receipts")  # the paths are others


def test_the_same_bytes_twice_are_one_log(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    shutil.copy(archive / PICKED[0], archive / "copy.log")
    done = run(invoke, archive, tmp_path / "store")
    assert lines(done)[PICKED[0]]["same_as"] == "copy.log"
    assert len(tree(tmp_path / "store" / "receipts")) == 3


def test_a_log_with_the_longest_name(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    shutil.copy(LOGS / PICKED[0], folder / f"{'a' * 251}.log")
    done = invoke("store", "build", folder, "--store", tmp_path / "store", "--workers", "1", "--json")
    assert list(outcomes(done).values()) == ["written"]


def test_a_log_that_nobody_recognises_has_its_receipt(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "poem.log").write_text("the fog comes\non little cat feet\n" * 20)
    done = run(invoke, tmp_path / "poem.log", tmp_path / "store")
    assert (done.code, lines(done)["poem.log"]["recognised"], outcomes(done)) == (0, False, {"poem.log": "written"})


# What was captured


def header_file(invoke: Invoke, path: Path, name: str) -> None:
    assert invoke("header", "-o", path, "--name", name, "--lane", "a-lane").code == 0


def stored(tmp_path: Path, line: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((tmp_path / "store" / line["receipt"]).read_bytes())
    return document


def test_a_header_file_beside_the_log_is_its_header(
    invoke: Invoke, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header_file(invoke, archive / "hf-trainer" / "crash-resumed-v5.header.json", "from the job")
    monkeypatch.setenv("RECEIPT_GIT_BRANCH", "of-who-derives")
    done = run(invoke, archive, tmp_path / "store")
    document = stored(tmp_path, lines(done)[PICKED[0]])
    assert (document["run"]["name"], document["run"]["lane"]) == ("from the job", "a-lane")
    assert document["header"]["hardware"]["cpu_count"] is not None
    assert "of-who-derives" not in json.dumps([stored(tmp_path, lines(done)[name]) for name in PICKED])


def test_a_receipt_beside_the_log_gives_what_was_captured_and_the_options(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    log = archive / PICKED[0]
    beside = log.with_suffix(".receipt.json")
    options = ["--exit-code", "7", "--name", "stated", "--attach", "trace=s3://b/t.gz"]
    assert invoke("parse", log, "-o", beside, *options).code == 0
    line = lines(run(invoke, archive, tmp_path / "store"))[PICKED[0]]
    assert (tmp_path / "store" / line["receipt"]).read_bytes() == beside.read_bytes()


def test_a_receipt_of_other_bytes_is_passed_over_and_said(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    log = archive / PICKED[0]
    assert invoke("parse", archive / PICKED[1], "-o", log.with_suffix(".receipt.json"), "--name", "other").code == 0
    line = lines(run(invoke, archive, tmp_path / "store"))[PICKED[0]]
    assert stored(tmp_path, line)["run"]["name"] is None
    assert "belongs to another log" in line["notes"][0]


def test_what_the_store_has_captured_stays_when_the_derivation_changes(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    """As after a release that reads more of the log: here the old receipt is one that reads another last loss."""
    log = archive / PICKED[0]
    made = tmp_path / "old.json"
    assert invoke("parse", log, "-o", made, "--job-exit", "9", "--name", "kept", "--attach", "trace=s3://b/t.gz").code == 0
    right = made.read_bytes()
    old = json.loads(right)
    for summary in (old["summary"], old["phases"][0]["summary"]):
        summary["metrics"]["loss"]["last"] = summary["metrics"]["loss"]["max"]
    old["derivation"]["rules"] = "derive/2"
    made.write_bytes(canonical_bytes(old))
    assert invoke("store", "add", tmp_path / "store", made).code == 0
    before = tree(tmp_path / "store")
    dry = run(invoke, log, tmp_path / "store", "--dry-run")
    (line,) = lines(dry).values()
    assert line["outcome"] == "replaced"
    assert {"pointer": "/summary/metrics/loss/last", "kind": "changed"}.items() <= line["differences"][0].items()
    assert tree(tmp_path / "store") == before
    shown = invoke("store", "build", log, "--store", tmp_path / "store", "--dry-run").stdout.decode()
    assert "would be replaced" in shown and "/summary/metrics/loss/last" in shown
    now = json.loads(right)["derivation"]["rules"]
    assert line["causes"] == [f"rules derive/2 → {now}"]
    assert f"because of: rules derive/2 → {now}" in shown
    (line,) = lines(run(invoke, log, tmp_path / "store")).values()
    assert (line["outcome"], line["receipt"][-7:]) == ("replaced", ".2.json")
    assert (tmp_path / "store" / line["receipt"]).read_bytes() == right
    assert before.items() <= tree(tmp_path / "store").items()  # the old one is history


def test_a_dry_run_makes_no_store(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    done = run(invoke, archive, tmp_path / "store", "--dry-run")
    assert set(outcomes(done).values()) == {"written"}
    assert not (tmp_path / "store").exists()


def test_a_damaged_receipt_in_the_store_is_not_replaced(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    (line,) = lines(run(invoke, archive / PICKED[0], tmp_path / "store")).values()
    path = tmp_path / "store" / line["receipt"]
    path.write_bytes(path.read_bytes()[:-100])
    done = run(invoke, archive / PICKED[0], tmp_path / "store", "--again")
    assert done.code == 5
    assert [name for name in tree(tmp_path / "store") if name.startswith("receipts/")] == [line["receipt"]]


# Quarantine


def test_broken_logs_are_put_aside_and_stop_no_other(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    (archive / "a-tar.log.gz").write_bytes(gzip.compress(bytes(257) + b"ustar" + bytes(4000)))
    (archive / "cut.log.gz").write_bytes(gzip.compress(b"x" * 1000)[:6])
    (archive / "empty.log").touch()
    (archive / "slurm-7.err").touch()
    (archive / "model.out").write_bytes(bytes(range(256)) * 64)
    done = run(invoke, archive, tmp_path / "store")
    found = outcomes(done)
    assert done.code == 3
    assert {name for name, outcome in found.items() if outcome == "quarantined"} == {"a-tar.log.gz", "cut.log.gz", "empty.log"}
    assert [found[name] for name in PICKED] == ["written"] * 3
    told = {name: lines(done)[name]["error"] for name in ("slurm-7.err", "model.out")}
    assert told == {"slurm-7.err": "empty", "model.out": "binary"}  # nobody's log, and no log
    listed = invoke("store", "ls", tmp_path / "store", "--quarantine", "--json")
    records = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [(r["path"], r["exit_code"]) for r in records] == [("a-tar.log.gz", 3), ("cut.log.gz", 3), ("empty.log", 3)]


def test_a_log_that_is_put_right_leaves_quarantine(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    (archive / "late.log").touch()
    assert run(invoke, archive, tmp_path / "store").code == 3
    (archive / "late.log").write_bytes((archive / PICKED[0]).read_bytes() + b"and one line\n")
    assert run(invoke, archive, tmp_path / "store").code == 0
    assert not [name for name in tree(tmp_path / "store") if name.startswith("quarantine/")]


class Here:
    """An engine without processes, in which the work on some logs is lost."""

    workers = 1

    def __init__(self, lost: str = "") -> None:
        self.lost = lost
        self.asked: list[str] = []

    def run(self, work: Any, items: Any, sizes: Any, kinds: Any = ()) -> Iterator[tuple[int, Any]]:
        """Do the work, last item first."""
        for position in reversed(range(len(items))):
            item = items[position]
            self.asked.append(work.__name__)
            fatal = work.__name__ == "derive_receipt" and item.logs[0].name == self.lost
            yield position, Lost("the process was ended by SIGSEGV, twice") if fatal else work(item)

    def close(self) -> None:
        """Nothing runs."""


@pytest.mark.usefixtures("settled")
def test_a_log_that_kills_its_worker_is_put_aside_until_definitions_change(archive: Path, tmp_path: Path) -> None:
    logs = walk([str(archive)]).logs
    found = {r.log.name: r for r in rederive(logs, Batch(tmp_path / "store", Here(PICKED[1]))).reports}
    assert {name: report.change for name, report in found.items()} == {
        PICKED[0]: "written", PICKED[1]: "quarantined", PICKED[2]: "written"
    }  # fmt: skip
    failure = found[PICKED[1]].failure
    assert failure is not None and (failure.exit_code, failure.detail) == (70, "the process was ended by SIGSEGV, twice")
    again = Here()
    second = list(rederive(logs, Batch(tmp_path / "store", again)).reports)
    assert (again.asked, [r.change for r in second].count("quarantined")) == ([], 1)  # it is not tried at every run
    third = list(rederive(logs, Batch(tmp_path / "store", Here(), again=True)).reports)
    assert {report.change for report in third} == {"written", "unchanged"}
    assert not list((tmp_path / "store" / "quarantine").rglob("*.json"))


def test_reports_come_by_name_whatever_is_done_first(archive: Path, tmp_path: Path) -> None:
    reports = rederive(walk([str(archive)]).logs, Batch(tmp_path / "store", Here())).reports
    assert [report.log.name for report in reports] == sorted(PICKED)


# Logs that change under our hands


class Meddling(Here):
    """An engine that does something to the archive between the two rounds."""

    def __init__(self, meddle: Any) -> None:
        super().__init__()
        self.meddle = meddle

    def run(self, work: Any, items: Any, sizes: Any, kinds: Any = ()) -> Iterator[tuple[int, Any]]:
        """Meddle before anything is derived."""
        if work.__name__ == "derive_receipt":
            self.meddle()
        yield from super().run(work, items, sizes)


def test_a_log_that_grows_gets_the_receipt_of_one_moment(archive: Path, tmp_path: Path) -> None:
    log = archive / PICKED[0]

    def grow() -> None:
        with log.open("ab") as file:
            file.write(b"a line that came later\n")

    (report,) = rederive(walk([str(log)]).logs, Batch(tmp_path / "store", Meddling(grow))).reports
    assert report.receipt is not None
    document = json.loads((tmp_path / "store" / report.receipt).read_bytes())
    digest = hashlib.sha256(log.read_bytes()).hexdigest()
    assert document["derivation"]["log"]["sha256"] == digest == Path(report.receipt).stem[:64]
    assert "is being written to" in report.notes[-1]


def test_a_log_that_vanishes_is_said_to_be_gone_and_stops_no_other(archive: Path, tmp_path: Path) -> None:
    logs = walk([str(archive)]).logs
    reports = rederive(logs, Batch(tmp_path / "store", Meddling((archive / PICKED[0]).unlink))).reports
    assert {report.log.name: report.change for report in reports} == {
        PICKED[0]: "gone", PICKED[1]: "written", PICKED[2]: "written"
    }  # fmt: skip
    assert not (tmp_path / "store" / "quarantine").exists()


def test_of_two_copies_one_may_vanish(archive: Path, tmp_path: Path) -> None:
    shutil.copy(archive / PICKED[0], archive / "a.log")
    reports = list(rederive(walk([str(archive)]).logs, Batch(tmp_path / "store", Meddling((archive / "a.log").unlink))).reports)
    assert {report.change for report in reports} == {"written"}


# The store cannot be written


def test_a_store_that_cannot_be_written_is_exit_6_before_any_work(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("in the way")
    done = run(invoke, archive, tmp_path / "store")
    assert (done.code, done.stdout) == (6, b"")


def test_a_disk_that_fills_up_stops_the_batch_and_leaves_whole_files(process: Invoke, archive: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: no receipt fits, a line of the cache does."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    given = ("rederive", archive, "--store", tmp_path / "store", "--workers", "2")
    full = process(*given, preexec_fn=limit)
    assert full.code == 6
    assert "cannot write" in full.stderr and "to resume" in full.stderr
    assert tree(tmp_path / "store") == {}
    assert process(*given).code == 0
    assert len(tree(tmp_path / "store" / "receipts")) == 3


def test_a_url_is_no_store(invoke: Invoke, archive: Path) -> None:
    done = invoke("store", "build", archive, "--store", "s3://bucket/store")
    assert (done.code, "a store is a folder" in done.stderr) == (2, True)


def test_an_archive_behind_a_url(process: Invoke, archive: Path, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    local, remote = tmp_path / "local", tmp_path / "remote"
    assert process("store", "build", archive, "--store", local).code == 0
    assert process("store", "build", f"file://{archive}", "--store", remote).code == 0
    assert tree(local / "receipts") == tree(remote / "receipts")
    paths = [json.loads(data)["path"] for data in tree(remote / "places").values()]
    assert sorted(paths) == [f"file://{archive}/{name}" for name in sorted(PICKED)]


# Several at once, and interrupted


def test_two_batches_at_once_make_one_store(archive: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "receipt_cli", "rederive", str(archive), "--store", str(tmp_path / "both"), "--workers", "1"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    batches = [subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environ) for _ in range(3)]
    assert [batch.wait() for batch in batches] == [0, 0, 0]
    subprocess.run([*command[:-3], str(tmp_path / "alone"), "--workers", "1"], check=True, stdout=subprocess.DEVNULL, env=environ)
    assert tree(tmp_path / "both") == tree(tmp_path / "alone")


def test_paths_from_stdin(invoke: Invoke, archive: Path, tmp_path: Path) -> None:
    paths = "".join(f"{archive / name}\n" for name in PICKED).encode()
    given = ("rederive", "--paths-from", "-", "--root", tmp_path, "--store", tmp_path / "store", "--json", "--workers", "1")
    assert list(lines(invoke(*given, stdin=paths))) == [f"archive/{name}" for name in sorted(PICKED)]
    assert invoke("store", "build", "--store", tmp_path / "store").code == 2


def test_ctrl_c_ends_cleanly_and_the_next_run_goes_on(archive: Path, tmp_path: Path, process: Invoke) -> None:
    for number in range(16):
        (archive / f"{number}.log").write_bytes(b"copy %d\n" % number + (archive / PICKED[0]).read_bytes())
    command = [sys.executable, "-m", "receipt_cli", "rederive", str(archive), "--store", str(tmp_path / "store")]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    for _ in range(5):
        batch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, start_new_session=True)
        while not list((tmp_path / "store").glob("receipts/*/*.json")) and batch.poll() is None:
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(batch.pid, signal.SIGINT)  # as a terminal does: to all of the group
        out, err = batch.communicate(timeout=60)
        if batch.returncode != 0:
            break
        shutil.rmtree(tmp_path / "store")  # on a busy machine it may be over before we have looked
    assert (batch.returncode, out) == (130, b"")
    assert err.decode().startswith("receipt: note: interrupted after ") and "Traceback" not in err.decode()
    for data in tree(tmp_path / "store").values():
        json.loads(data)
    assert process("store", "build", archive, "--store", tmp_path / "store").code == 0
    assert len(tree(tmp_path / "store" / "receipts")) == 19
