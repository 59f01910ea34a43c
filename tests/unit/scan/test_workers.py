"""Several workers on one log give what one pass gives, whatever it comes out of and whatever goes wrong."""

import gzip
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.derive import Options, derive
from receipt_cli.errors import InputError
from receipt_cli.grammar.catalog import get_grammar
from receipt_cli.io import source
from receipt_cli.io.source import Source
from receipt_cli.receipts.assembly import assemble, derived_bytes
from receipt_cli.scan import workers as parallel
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.presence import VARIABLE, has_kernel
from receipt_cli.scan.segment import Segment
from receipt_cli.scan.workers import AUTO, scan_source

LINE = b"iter %d: loss %d.%04d, time 131.97ms, mfu 29.53%%\n"
LOG = b"".join(LINE % (n, n % 7, n * 7919 % 10007) for n in range(2000)) + b"torch.OutOfMemoryError: CUDA out of memory.\n"
HAS_KERNEL = has_kernel()


@pytest.fixture(autouse=True)
def without_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel is, there are no processes."""
    monkeypatch.setenv(VARIABLE, "0")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that a small log has many."""
    monkeypatch.setattr(parallel, "MIN_PARALLEL", 20_000)
    monkeypatch.setattr(source, "BLOCK", 1000)
    monkeypatch.setattr(source, "DIRECT", 5000)


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_in_pieces", None)


def derived(path: Path, workers: int | None) -> bytes:
    derivation = derive(Source(str(path)), Options(grammar="nanogpt"), workers=workers)
    return derived_bytes(assemble(derivation, run={}, header={}))


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def left_over() -> list[object]:
    threads = [t.name for t in threading.enumerate() if t.name.startswith("ahead")]
    return [*threads, *multiprocessing.active_children()]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("workers", [2, 3, AUTO])
def test_the_result_is_that_of_one_pass(workers: int, tmp_path: Path) -> None:
    log = write(tmp_path / "log", LOG)
    assert derived(log, workers) == derived(log, 1)
    assert left_over() == []


@pytest.mark.parametrize("size", [700, 3000])
def test_the_size_of_the_blocks_does_not_matter(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path / "log", LOG)
    monkeypatch.setattr(source, "BLOCK", size)
    assert derived(log, 2) == derived(log, 1)


@pytest.mark.usefixtures("small")
def test_a_compressed_log_has_workers_too(tmp_path: Path) -> None:
    wanted = derived(write(tmp_path / "log", LOG), 1)
    assert derived(write(tmp_path / "log.gz", gzip.compress(LOG)), 2) == wanted
    assert left_over() == []


@pytest.mark.usefixtures("small", "no_processes")
@pytest.mark.parametrize("workers", [2, AUTO])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_pipe_has_one_worker(pack: Callable[[bytes], bytes], workers: int, tmp_path: Path) -> None:
    wanted = derived(write(tmp_path / "log", LOG), 1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write, args=(pipe, pack(LOG)))
    writer.start()
    found = derived(pipe, workers)
    writer.join()
    assert found == wanted
    assert left_over() == []


@pytest.mark.usefixtures("no_processes")
@pytest.mark.parametrize("workers", [None, AUTO, 1])
def test_small_logs_and_library_calls_start_no_process(workers: int | None, tmp_path: Path) -> None:
    assert f'"size_bytes": {len(LOG)}'.encode() in derived(write(tmp_path / "log", LOG), workers)


@pytest.mark.usefixtures("small", "no_processes")
@pytest.mark.skipif(not HAS_KERNEL, reason="the kernel is not compiled")
def test_with_the_kernel_no_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path / "log", LOG)
    wanted = derived(log, 1)
    monkeypatch.delenv(VARIABLE)
    assert [derived(log, workers) for workers in (1, 2, AUTO)] == [wanted] * 3
    assert left_over() == []


@pytest.mark.usefixtures("small")
def test_a_log_that_changes_meanwhile_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path / "log", LOG)
    passes: list[int | None] = []
    blocks = Source.blocks

    def watched(self: Source) -> Iterable[bytes]:
        passes.append(self.plain_size)
        yield from blocks(self)
        self.changed = True

    monkeypatch.setattr(Source, "blocks", watched)
    found = derived(log, 2)
    assert passes == [len(LOG)]
    assert found == derived(log, 1)


def killed(block: bytes) -> Segment:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.usefixtures("small")
@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="a worker must know what is patched")
def test_a_worker_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_scan_block", killed)
    with pytest.raises(InputError, match="a worker was killed"):
        derived(write(tmp_path / "log", LOG), 2)
    assert left_over() == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_ends_all(workers: int, error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(done: int, total: int) -> None:
        if done > 8000:
            raise error

    log = Source(str(write(tmp_path / "log", LOG)), broken)
    with pytest.raises(error) as caught:
        scan_source(Engine([get_grammar("nanogpt")], load_catalogue()), log, workers)
    assert left_over() == []
    del caught  # whose traceback holds the iterator


@pytest.mark.usefixtures("small")
def test_the_bytes_read_are_told_from_the_thread_that_asked(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    tellers: set[int] = set()

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        tellers.add(threading.get_ident())

    derive(Source(str(write(tmp_path / "log", LOG)), progress), Options(grammar="nanogpt"), workers=2)
    assert told[-1] == (len(LOG), len(LOG))
    assert tellers == {threading.get_ident()}
