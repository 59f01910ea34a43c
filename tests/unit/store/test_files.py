"""The store: files that are created once and whole, whoever else writes, and whatever goes wrong."""

import copy
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import InputError, OutputError, UsageError
from receipt_cli.receipts.production import Request, produce
from receipt_cli.store.files import LEFT_OVER_S, Quarantined, Store

LOG = Path(__file__).resolve().parents[3] / "fixtures" / "logs" / "hf-trainer" / "crash-resumed-v5.log"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> Document:
    return produce(Request(str(LOG))).document


@pytest.fixture
def receipt(made: Document) -> Document:
    return copy.deepcopy(made)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def files(store: Store) -> list[str]:
    return sorted(p.relative_to(store.root).as_posix() for p in store.root.rglob("*") if p.is_file())


def test_a_receipt_stands_under_the_digest_of_its_log(store: Store, receipt: Document) -> None:
    log = receipt["derivation"]["log"]["sha256"]
    outcome = store.add(receipt)
    assert (outcome.change, outcome.path) == ("written", f"receipts/{log[:2]}/{log}.1.json")
    assert files(store) == [outcome.path]
    assert store.current(log) == canonical_bytes(receipt) == (store.root / outcome.path).read_bytes()


def test_the_same_receipt_is_not_written_again(store: Store, receipt: Document) -> None:
    first = store.add(receipt)
    status = (store.root / first.path).stat()
    again = store.add(receipt)
    assert (again.change, again.path) == ("unchanged", first.path)
    assert (store.root / first.path).stat().st_mtime_ns == status.st_mtime_ns


def test_another_version_of_the_tool_alone_is_the_same_receipt(store: Store, receipt: Document) -> None:
    store.add(receipt)
    receipt["derivation"]["tool_version"] = "99.0"
    assert store.add(receipt).change == "unchanged"


def test_another_receipt_of_the_log_becomes_current_and_the_old_one_history(store: Store, receipt: Document) -> None:
    log = receipt["derivation"]["log"]["sha256"]
    old = canonical_bytes(receipt)
    store.add(receipt)
    for number in range(2, 12):  # beyond nine: generations are numbers, not texts
        receipt["run"]["name"] = f"renamed-{number}"
        assert store.add(receipt).change == "replaced"
    history = store.history(log)
    assert [found.generation for found in history] == list(range(1, 12))
    assert history[0].path.read_bytes() == old
    assert store.current(log) == canonical_bytes(receipt)
    assert [(found.log_sha256, found.generation) for found in store.receipts()] == [(log, 11)]


def test_other_documents_stand_under_their_own_digest(store: Store) -> None:
    document = {"schema_version": "evaluation/1.0", "steps": []}
    first, again = store.add(document), store.add(document)
    assert (first.change, again.change) == ("written", "unchanged")
    assert first.path.startswith("documents/evaluation/")
    assert [path.relative_to(store.root).as_posix() for path in store.documents()] == [first.path]
    assert list(store.receipts()) == []


@pytest.mark.parametrize("version", ["header/1.0", "../x/1.0", "receipt", None, 7])
def test_what_has_no_place_is_refused(store: Store, version: object) -> None:
    with pytest.raises(UsageError, match="does not take"):
        store.add({"schema_version": version})
    assert not store.root.exists()


def test_a_receipt_of_an_earlier_run_in_its_log_is_refused(store: Store, receipt: Document) -> None:
    receipt["derivation"]["launches"] = {"count": 3, "used": 2, "first_line": 40}
    with pytest.raises(UsageError, match="run 2 of 3"):
        store.add(receipt)


def test_many_writers_of_different_receipts_lose_none(store: Store, receipt: Document) -> None:
    log = receipt["derivation"]["log"]["sha256"]

    def write(number: int) -> None:
        store.add({**receipt, "run": {**receipt["run"], "name": f"writer {number}"}})

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(16)))
    history = store.history(log)
    assert [found.generation for found in history] == list(range(1, 17))
    assert {json.loads(found.path.read_bytes())["run"]["name"] for found in history} == {f"writer {n}" for n in range(16)}


def test_many_writers_of_the_same_receipt_write_one(store: Store, receipt: Document) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: store.add(receipt), range(16)))
    assert len(files(store)) == 1


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_full_disk_leaves_nothing_behind(store: Store, receipt: Document, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OutputError) as caught:
        store.add(receipt)
    monkeypatch.undo()
    assert caught.value.why == "No space left on device"
    assert files(store) == []
    assert store.add(receipt).change == "written"


def test_the_cache_may_be_cleared_while_a_receipt_is_written(
    store: Store, receipt: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, cleared = os.link, []

    def link(source: str, target: Path) -> None:
        if not cleared:
            cleared.append(source)
            os.unlink(source)
        make(source, target)

    monkeypatch.setattr(os, "link", link)
    assert store.add(receipt).change == "written"
    assert cleared


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path, receipt: Document) -> None:
    (tmp_path / "store").write_text("a file where the store should be")
    with pytest.raises(OutputError):
        Store(tmp_path / "store").check_writable()
    with pytest.raises(OutputError):
        Store(tmp_path / "store").add(receipt)


def test_only_what_was_left_long_ago_is_cleared_away(store: Store) -> None:
    store.check_writable()
    old, new = store.scratch / ".receipt-old.tmp", store.scratch / ".receipt-new.tmp"
    for path in (old, new):
        path.write_text("half")
    then = time.time() - LEFT_OVER_S - 60
    os.utime(old, (then, then))
    store.check_writable()
    assert list(store.scratch.iterdir()) == [new]


def test_no_store_is_an_error_to_who_reads_it(store: Store) -> None:
    assert list(store.receipts()) == [] and list(store.quarantined()) == []
    with pytest.raises(InputError, match="no such store"):
        store.check_exists()


BAD = Quarantined("b/run.log", "ab" * 32, 10, 70, "a bug of ours", "ValueError")


def test_quarantine_and_release(store: Store) -> None:
    assert store.quarantine(BAD) is True
    assert store.quarantine(BAD) is False
    assert list(store.quarantined()) == [BAD]
    assert files(store) == [f"quarantine/ab/{'ab' * 32}.json"]
    store.release(BAD.key)
    store.release(BAD.key)
    assert list(store.quarantined()) == []


def test_a_log_that_cannot_be_read_is_kept_by_its_path(store: Store) -> None:
    one, other = (Quarantined(path, None, None, 3, "cannot read the log", "Permission denied") for path in ("a.log", "b.log"))
    store.quarantine(one)
    store.quarantine(other)
    assert {record.path for record in store.quarantined()} == {"a.log", "b.log"}


@pytest.mark.parametrize("order", [("a/run.log", "b/run.log"), ("b/run.log", "a/run.log")])
def test_of_two_paths_with_the_same_bytes_the_first_in_order_is_noted(store: Store, order: tuple[str, str]) -> None:
    for path in order:
        store.quarantine(Quarantined(path, BAD.sha256, 10, 70, BAD.error, BAD.why))
    assert [record.path for record in store.quarantined()] == ["a/run.log"]


def test_a_damaged_record_is_passed_over(store: Store) -> None:
    store.quarantine(BAD)
    next(store.root.rglob("*.json")).write_text('{"path": ')
    assert list(store.quarantined()) == []
    assert store.quarantine(BAD) is True
