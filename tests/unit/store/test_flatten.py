"""A receipt as a row of the index: what is worked out, and what a column cannot hold."""

import json
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.analysis.goodput.model import OF_COMMAND, Wall
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.receipts.production import Request, produce
from receipt_cli.receipts.stated import read_facts
from receipt_cli.store import flatten as rows
from receipt_cli.store.flatten import RowFiles, read_row
from receipt_cli.store.views import structure

LOGS = Path(__file__).resolve().parents[3] / "fixtures" / "logs"


@pytest.fixture(scope="module")
def receipt() -> bytes:
    return canonical_bytes(produce(Request(path=str(LOGS / "nanochat" / "speedrun-2025-10.log"))).document)


def row_files(path: Path, log_sha256: str) -> RowFiles:
    return RowFiles(path.parent, path.name, log_sha256, 1, None, "stamp", 0)


def stamp(document: dict[str, Any], time: dict[str, Any] | None) -> None:
    """Let the log have stamps, or none."""
    for summary in (document["summary"], *(phase["summary"] for phase in document["phases"])):
        summary["time"] = time


def row_of(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    path = folder / "r.json"
    path.write_bytes(canonical_bytes(document))
    return json.loads(read_row(row_files(path, document["derivation"]["log"]["sha256"])))


def test_a_row_has_every_column_of_the_index(receipt: bytes, tmp_path: Path) -> None:
    row = row_of(json.loads(receipt), tmp_path)
    assert row["refusal"] is None
    assert set(row) == set(structure())


@pytest.mark.parametrize(
    ("stated", "want"),
    [
        ("2026-03-01T00:00:00Z", "2026-03-01 00:00:00"),
        ("2026-03-01T00:00:00.25Z", "2026-03-01 00:00:00.250000"),
        ("2026-03-01T00:00:00.123456789Z", "2026-03-01 00:00:00.123456"),
        ("2016-12-31T23:59:60Z", "2017-01-01 00:00:00"),
        ("2026-02-30T00:00:00Z", None),
        ("9999-12-31T23:59:60Z", None),
        (None, None),
    ],
)
def test_times(receipt: bytes, tmp_path: Path, stated: str | None, want: str | None) -> None:
    document = json.loads(receipt)
    document["run"]["started_at"] = stated
    stamp(document, None)
    row = row_of(document, tmp_path)
    assert (row["refusal"], row["started_at"], row["run_at"]) == (None, want, want)
    assert row["run_at_source"] == (None if want is None else "started_at")


@pytest.mark.parametrize(("zone", "source"), [("utc", "log"), (None, "log_local")])
def test_the_log_s_first_stamp_is_the_time_of_a_run_without_one(
    receipt: bytes, tmp_path: Path, zone: str | None, source: str
) -> None:
    document = json.loads(receipt)
    mark = "Z" if zone else ""
    first, last = f"2026-03-01T00:00:00{mark}", f"2026-03-01T01:00:00{mark}"
    stamp(document, {"first": first, "last": last, "zone": zone, "source": "log_lines"})
    row = row_of(document, tmp_path)
    assert (row["run_at"], row["run_at_source"]) == ("2026-03-01 00:00:00", source)
    assert (row["log_last_at"], row["log_zone"]) == ("2026-03-01 01:00:00", zone)


@pytest.mark.parametrize(
    ("entries", "want"),
    [
        (None, (None, None, None)),
        ([("H100", 8, 85899345920)], ("H100", 8, 85899345920)),
        ([("H100", 8, 1), ("B200", 4, 2)], ("H100 + B200", 12, None)),
        ([("H100", 8, 1), ("B200", None, 2)], ("H100 + B200", None, None)),
        ([(None, 8, None)], (None, 8, None)),
        ([(None, 8, 1), ("B200", 1, 1)], ("– + B200", 9, None)),
    ],
)
def test_accelerators(receipt: bytes, tmp_path: Path, entries: Any, want: tuple[Any, ...]) -> None:
    document = json.loads(receipt)
    keys = ("name", "count", "memory_bytes")
    document["header"]["hardware"]["accelerators"] = (
        None if entries is None else [dict(zip(keys, e, strict=True)) for e in entries]
    )
    document["header"]["sources"] = {"/hardware/accelerators": "file", **document["header"]["sources"]} if entries else {}
    document["header"] = {**document["header"], "sources": _sources(document)}
    row = row_of(document, tmp_path)
    assert row["refusal"] is None
    assert tuple(row[f"accelerator_{key}"] for key in keys) == want


def _sources(document: dict[str, Any]) -> dict[str, str]:
    """Return an origin for every value of the header."""
    header = document["header"]
    return {f"/{key}": "file" for key, value in header.items() if key != "sources" and _said(value)}


def _said(value: Any) -> bool:
    return (
        any(map(_said, value.values() if isinstance(value, dict) else value))
        if isinstance(value, dict | list)
        else value is not None
    )


def test_numbers_beyond_64_bits_are_unknown(tmp_path: Path) -> None:
    failed = produce(Request(path=str(LOGS / "nanochat" / "speedrun-2025-10.log"), exit_code=1)).document
    document = json.loads(canonical_bytes(failed))
    document["run"]["exit_code"] = document["derivation"]["options"]["exit_code"] = 2**63
    assert row_of(document, tmp_path)["exit_code"] is None


def test_a_metric_is_known_by_its_id(receipt: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A later registry may give it another name: the column is the same, and the view has the newer name."""
    registry = rows.load_registry()
    renamed = [
        m if m.id != 1 else type(m)(1, "new_name", m.unit, m.klass, m.window, m.better, m.description, ())
        for m in registry.metrics
    ]
    monkeypatch.setattr(rows, "load_registry", lambda: type(registry)(2, "", tuple(renamed), {}))
    document = json.loads(receipt)
    row = row_of(document, tmp_path)
    assert row["loss_last"] == document["summary"]["metrics"]["loss"]["last"]
    named = {metric["id"]: metric["metric"] for phase in row["phases"] for metric in phase["metrics"]}
    assert named[1] == "new_name"


def test_a_damaged_file_is_a_row_with_a_reason(receipt: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    for data in (b"", b"{", b"[]", b"\xff", receipt[:-40], receipt.replace(b'"id": 1,', b'"id": 2,', 1)):
        path.write_bytes(data)
        row = json.loads(read_row(row_files(path, "0" * 64)))
        assert row["refusal"] and "loss_last" not in row
    assert json.loads(read_row(row_files(tmp_path / "none", "0" * 64)))["refusal"].startswith("cannot read")


def test_the_cost_that_a_receipt_contains_comes_first(receipt: bytes, tmp_path: Path) -> None:
    assert row_of(json.loads(receipt), tmp_path)["cost"] is None
    facts = read_facts(["price_per_device_hour=2.50 EUR/h", "devices=8"])
    stated = produce(
        Request(path=str(LOGS / "nanochat" / "speedrun-2025-10.log"), facts=facts, wall=Wall(7200, OF_COMMAND))
    ).document
    row = row_of(stated, tmp_path)
    assert (row["device_hours"], row["cost"], row["currency"]) == (16, 40, "EUR")
