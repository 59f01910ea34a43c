"""Without an optional package, an error names the extra that has it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

LOG = Path(__file__).resolve().parents[2] / "fixtures" / "logs" / "hf-trainer" / "crash-callback-v5.log"


@pytest.mark.parametrize(
    ("package", "extra", "line"),
    [
        ("duckdb", "store", "store query {} from_runs"),
        ("duckdb", "store", "parse {log} --series s.parquet"),
        ("fsspec", "remote", "store build s3://bucket/logs --store {}"),
        ("mcp", "mcp", "mcp"),
        ("ray", "ray", "store build {log} --store {} --engine ray"),
        ("securesystemslib", "attest", "attest {receipt} --key k"),
        ("sigstore", "sigstore", "attest {receipt} --sigstore"),
        ("mlflow", "mlflow", "export {receipt} --to mlflow -o m.db"),
    ],
)
def test_the_extra_is_named(
    package: str, extra: str, line: str, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    invoke("parse", LOG, "-o", tmp_path / "receipt.json")
    users = ("receipt_cli.mcp_server", "receipt_cli.batch.ray_engine")  # imported before, they know the package
    for name in [name for name in sys.modules if name.partition(".")[0] == package or name.startswith(users)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    done = invoke(*(word.format("store", log=LOG, receipt=tmp_path / "receipt.json") for word in line.split()))
    assert done.code == 2
    assert f"pip install 'receipt-cli[{extra}]'" in done.stderr


def test_spans_name_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    monkeypatch.delitem(sys.modules, "receipt_cli.emit.otel", raising=False)
    with pytest.raises(ImportError, match=r"receipt-cli\[otel\]"):
        importlib.import_module("receipt_cli.emit.otel")
