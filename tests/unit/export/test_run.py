"""The run that all formats are written from, and the bytes of the small formats."""

import csv
import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from receipt_cli.errors import UsageError
from receipt_cli.export.bmf import bmf
from receipt_cli.export.formats import FORMATS, Name, export
from receipt_cli.export.in_toto import in_toto, predicate_type
from receipt_cli.export.run import ExportedRun, gather, instant, read_curves
from receipt_cli.export.tables import csv_table
from receipt_cli.io.protobuf import block, double, integer, single, varint
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.receipts.production import Request, produce

LOG = Path(__file__).resolve().parents[3] / "fixtures" / "logs" / "nanochat" / "speedrun-2025-10.log"


@pytest.fixture(scope="module")
def product() -> Any:
    return produce(Request(path=str(LOG), workers=1))


@pytest.fixture(scope="module")
def run(product: Any) -> ExportedRun:
    return gather(product.document, product, most=100, at="2026-03-01T12:00:00Z")


def test_a_time_has_a_zone() -> None:
    assert instant("1970-01-01T00:00:01.000001Z") == 1_000_001_000
    assert instant("1970-01-01T01:00:00+01:00") == 0
    assert instant("1970-01-01T00:00:00") is instant("yesterday") is instant(None) is None


@pytest.mark.parametrize(
    ("at", "first", "seconds"),
    [
        ("2026-03-01T12:00:00Z", "2025-01-02T03:04:05Z", 1772366400),
        (None, "2025-01-02T03:04:05Z", 1735787045),
        (None, "2025-01-02T03:04:05", 1735787045),
        (None, None, 0),
    ],
)
def test_a_format_that_needs_a_date_has_the_first_stamp_of_the_log(
    product: Any, at: str | None, first: str | None, seconds: int
) -> None:
    time = first and {"first": first, "last": first, "zone": "utc" if first.endswith("Z") else None, "source": "log"}
    document = {**product.document, "summary": {**product.document["summary"], "time": time}}
    document["run"] = {**document["run"], "started_at": None, "finished_at": None}
    document["header"] = {**document["header"], "collected_at": None}
    document["derivation"] = {**document["derivation"], "log": {**document["derivation"]["log"], "time": None}}
    exported = gather(document, None, most=10, at=at)
    assert exported.dated_ns == seconds * 10**9
    assert exported.at_ns == (None if at is None else exported.dated_ns)


def test_a_wrong_time_is_refused(product: Any) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        gather(product.document, None, most=10, at="yesterday")


def test_figures_and_facts_come_from_the_receipt(run: ExportedRun, product: Any) -> None:
    primary = {figure.key: figure for figure in run.figures if not figure.phase.prefix}
    assert primary["loss"].known["last"] == product.document["summary"]["metrics"]["loss"]["last"]
    assert primary["loss"].headline == primary["loss"].known["last"]
    assert run.facts()["log_sha256"] == run.digest
    assert run.identity.startswith(run.digest[:20])


def test_curves_ascend_and_are_thinned(run: ExportedRun, product: Any) -> None:
    for curve in run.curves:
        assert list(curve.steps) == sorted(set(curve.steps)) and len(curve.steps) == len(curve.values)
    thinned, notes = read_curves(product, [figure.phase for figure in run.figures][:1], 3)
    assert {len(curve.steps) for curve in thinned} <= {1, 2, 3, 4}
    assert any("sampled evenly" in note for note in notes)


def test_the_last_value_of_a_step_counts() -> None:
    steps, values = last_of_each(np.array([3, 1, 3, 2]), np.array([1.0, 2.0, 4.0, np.nan]))
    assert steps.tolist() == [1, 2, 3]
    assert values[[0, 2]].tolist() == [2.0, 4.0]


def test_csv_has_a_row_a_step_or_a_metric(run: ExportedRun, product: Any) -> None:
    header, *rows = csv.reader(io.StringIO(csv_table(run).decode()))
    assert header[:3] == ["phase_index", "phase", "step"] and "loss" in header
    assert len(rows) == len({(curve.phase, step) for curve in run.curves for step in curve.steps})
    figures = csv_table(gather(product.document, None, most=0)).decode()
    assert figures.startswith("phase_index,phase,metric,source,unit,window")


def test_bencher_values_lie_between_their_bounds(run: ExportedRun) -> None:
    [measures] = json.loads(bmf(run)).values()
    assert measures["loss"]["value"] == next(f for f in run.figures if f.key == "loss").headline
    assert all(m["lower_value"] <= m["value"] <= m["upper_value"] for m in measures.values() if "lower_value" in m)


def test_a_statement_is_about_the_log(run: ExportedRun) -> None:
    statement = json.loads(in_toto(run))
    assert statement["subject"][0]["digest"] == {"sha256": run.digest}
    assert statement["predicateType"] == predicate_type(run) == "urn:receipt:predicate:receipt:1"
    assert statement["predicate"] == run.document


def test_protobuf_fields() -> None:
    """The examples of the encoding guide."""
    assert integer(1, 150) == bytes.fromhex("089601")
    assert block(2, "testing") == bytes.fromhex("120774657374696e67")
    assert varint(-1) == b"\xff" * 9 + b"\x01"
    assert double(1, 1.5) == b"\x09" + struct.pack("<d", 1.5)
    assert single(2, 1e300) == b"\x15" + struct.pack("<f", float("inf"))


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_gives_bytes_or_needs_a_path(name: Name, run: ExportedRun) -> None:
    if FORMATS[name].document is None:
        with pytest.raises(UsageError, match="needs an output path"):
            export(run, name, None)
    else:
        data, opened = export(run, name, None)
        assert data and opened is None
