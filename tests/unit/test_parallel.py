"""Several processes on one file give what one pass gives, whatever happens to the file or to a process."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from receipt_cli import parallel
from receipt_cli.catalog import get_grammar
from receipt_cli.derive import Options, derive
from receipt_cli.markers import load_catalogue
from receipt_cli.parallel import AUTO, MIN_PARALLEL, default_workers, scan_source
from receipt_cli.receipt import assemble, derived_bytes
from receipt_cli.scan import Engine
from receipt_cli.source import BLOCK, Source

LINE = b"iter %d: loss %d.%04d, time 131.97ms, mfu 29.53%%\n"
LOG = b"".join(LINE % (n, n % 7, n * 7919 % 10007) for n in range(2000)) + b"torch.OutOfMemoryError: CUDA out of memory.\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_bytes(LOG)
    return path


def derived(path: Path, workers: int | None) -> tuple[bytes, Source]:
    source = Source(str(path))
    return derived_bytes(assemble(derive(source, Options(grammar="nanogpt"), workers=workers), run={}, header={})), source


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("one") / "run.log"
    path.write_bytes(LOG)
    return derived(path, 1)[0]


@pytest.mark.parametrize(
    ("size", "want"),
    [(None, 1), (0, 1), (MIN_PARALLEL - 1, 1), (MIN_PARALLEL, min(8, os.cpu_count() or 1))],
)
def test_how_many_workers_pay_off(size: int | None, want: int) -> None:
    assert default_workers(size) == want


@pytest.mark.parametrize("workers", [2, 3])
def test_the_result_is_that_of_one_pass(log: Path, wanted: bytes, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Source, "again", None)  # the way out when workers fail
    found, source = derived(log, workers)
    assert found == wanted
    assert source.size_bytes == len(LOG)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("workers", [None, AUTO, 1])
def test_small_logs_and_library_calls_start_no_process(
    log: Path, wanted: bytes, workers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_in_ranges", None)
    assert derived(log, workers)[0] == wanted


def test_more_workers_than_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_in_ranges", None)
    (tmp_path / "run.log").write_bytes(b"hi\n")
    assert b'"size_bytes": 3' in derived(tmp_path / "run.log", 8)[0]


@pytest.mark.parametrize(
    ("sizes", "bounds", "want"),
    [
        ([10], [0, 4, 10], [(0, 4), (1, 6)]),
        ([4, 6], [0, 4, 10], [(0, 4), (1, 6)]),
        ([3, 3, 4], [0, 1, 2, 10], [(0, 1), (1, 1), (2, 1), (2, 3), (2, 4)]),
        ([2], [0, 4, 10], [(0, 2)]),
    ],
)
def test_blocks_are_cut_at_the_bounds(sizes: list[int], bounds: list[int], want: list[tuple[int, int]]) -> None:
    blocks = iter([bytes(size) for size in sizes])
    assert [(number, len(piece)) for number, piece in parallel._cut(blocks, bounds)] == want


def test_the_bytes_read_are_told(log: Path) -> None:
    told: list[tuple[int, int]] = []
    source = Source(str(log), lambda done, total: told.append((done, total)))
    derive(source, Options(grammar="nanogpt"), workers=2)
    assert told[-1] == (len(LOG), len(LOG))


def test_a_worker_that_dies(log: Path, wanted: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    started = multiprocessing.context.SpawnProcess.start

    def start_and_kill(process: Any) -> None:
        started(process)
        os.kill(process.pid, signal.SIGKILL)

    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", start_and_kill)
    found, source = derived(log, 2)
    assert found == wanted
    assert source.size_bytes == len(LOG)


def test_a_file_that_is_replaced_between_two_looks(log: Path, wanted: bytes) -> None:
    """The workers open the path again: what they find there must be what the digest is of."""
    source = Source(str(log))
    (log.parent / "new").write_bytes(LOG.replace(b"loss 3", b"loss 9"))
    (log.parent / "new").replace(log)
    derivation = derive(source, Options(grammar="nanogpt"), workers=2)
    assert derived_bytes(assemble(derivation, run={}, header={})) == wanted


def test_a_file_that_is_gone_at_the_second_look(log: Path, wanted: bytes) -> None:
    source = Source(str(log))
    log.unlink()
    derivation = derive(source, Options(grammar="nanogpt"), workers=2)
    assert derived_bytes(assemble(derivation, run={}, header={})) == wanted


def test_an_interruption_ends_the_workers(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(source: Source, *, keep_open: bool = False) -> Iterator[bytes]:
        yield LOG[:BLOCK]
        raise KeyboardInterrupt

    monkeypatch.setattr(Source, "blocks", interrupted)
    engine = Engine([get_grammar("nanogpt")], load_catalogue())
    with pytest.raises(KeyboardInterrupt):
        scan_source(engine, Source(str(log)), 2)
    assert multiprocessing.active_children() == []
