"""One log, however it is packed, wherever and however it is read, gives the same derived bytes."""

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from receipt_cli.receipts.assembly import derived_bytes
from tests.cli.conftest import Invoke

LOGS = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
LOG = LOGS / "hf-trainer" / "crash-resumed-v5.log"
PACKERS = {
    "run.log": bytes,
    "run.log.gz": gzip.compress,
    "run.log.zst": zstandard.ZstdCompressor().compress,
    "run.log.xz": lzma.compress,
    "run.log.bz2": bz2.compress,
}


def derived(
    path: str,
    *options: str,
    cwd: Path,
    environ: dict[str, str] | None = None,
    stdin: bytes | None = None,
    python: tuple[str, ...] = (),
) -> bytes:
    done = subprocess.run(
        [sys.executable, *python, "-m", "receipt_cli", "parse", "--json", *options, path],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **(environ or {})},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return derived_bytes(json.loads(done.stdout))


@pytest.fixture(scope="module")
def want() -> bytes:
    return derived(str(LOG), cwd=LOGS)


@pytest.mark.parametrize("name", PACKERS)
def test_however_it_is_packed(name: str, tmp_path: Path, want: bytes, invoke: Invoke) -> None:
    packed = PACKERS[name](LOG.read_bytes())
    (tmp_path / name).write_bytes(packed)
    for done in (invoke("parse", "--json", tmp_path / name), invoke("parse", "--json", "-", stdin=packed)):
        assert derived_bytes(done.document) == want


@pytest.mark.parametrize(
    "environ",
    [
        {"TZ": "America/St_Johns"},
        {"TZ": "Asia/Kathmandu", "LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0"},
        {"LC_ALL": "de_DE.UTF-8"},
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "4711"},
    ],
    ids=lambda e: ",".join(f"{k}={v}" for k, v in e.items()),
)
def test_in_any_environment(environ: dict[str, str], tmp_path: Path, want: bytes) -> None:
    assert derived(str(LOG), cwd=tmp_path, environ=environ) == want


def test_without_assertions(tmp_path: Path, want: bytes) -> None:
    assert derived(str(LOG), cwd=tmp_path, python=("-OO",)) == want


def test_on_any_number_of_workers(tmp_path: Path, want: bytes) -> None:
    packed = gzip.compress(LOG.read_bytes())
    assert derived(str(LOG), "--workers", "2", cwd=tmp_path) == want
    assert derived("-", "--workers", "2", cwd=tmp_path, stdin=packed) == want


def long_log() -> bytes:
    """Return several blocks and pieces of a log, with long lines, redraws and broken text across their ends."""
    lines: list[bytes] = []
    for n in range(60_000):
        lines.append(b"iter %d: loss %d.%04d, time %d.97ms, mfu 29.53%%\n" % (n, n % 7 + 1, n * 7919 % 10007, n % 90 + 100))
        if n % 1000 == 999:
            lines += [b"\r%3d%%|### | %d/60000" % (n // 600, n), b"\r\n", b"y" * (n * 31 % 90_000), b"\xff\xfe\r\n", b"\x00\n"]
        if n % 7000 == 0:
            lines.append(b"[rank1]: W1 some words that no rule explains: loss=%d\n" % n)
    return b"".join(lines)


def test_a_log_of_many_pieces(tmp_path: Path) -> None:
    log = long_log()
    packed = gzip.compress(log, 1)
    (tmp_path / "run.log").write_bytes(log)
    (tmp_path / "run.log.gz").write_bytes(packed)
    want = derived("run.log", "--workers", "1", cwd=tmp_path)
    for workers in ("2", "3"):
        assert derived("run.log", "--workers", workers, cwd=tmp_path) == want
        assert derived("run.log.gz", "--workers", workers, cwd=tmp_path) == want
        assert derived("-", "--workers", workers, cwd=tmp_path, stdin=log) == want
        assert derived("-", "--workers", workers, cwd=tmp_path, stdin=packed) == want
