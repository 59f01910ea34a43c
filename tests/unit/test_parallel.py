"""Several workers on one log give what one pass gives, whatever it comes out of and whatever goes wrong."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from receipt_cli import parallel, source
from receipt_cli.catalog import get_grammar
from receipt_cli.derive import Options, derive
from receipt_cli.markers import load_catalogue
from receipt_cli.parallel import AUTO, scan_blocks, scan_source
from receipt_cli.receipt import assemble, derived_bytes
from receipt_cli.scan import Engine
from receipt_cli.source import Source
from receipt_cli.stretch import Stretch

LINE = b"iter %d: loss %d.%04d, time 131.97ms, mfu 29.53%%\n"
LOG = b"".join(LINE % (n, n % 7, n * 7919 % 10007) for n in range(2000)) + b"torch.OutOfMemoryError: CUDA out of memory.\n"
BLOCKS = [LOG[at : at + 1000] for at in range(0, len(LOG), 1000)]


@pytest.fixture
def engine() -> Engine:
    return Engine([get_grammar("nanogpt")], load_catalogue())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces, blocks and what is read alone so small that a small log has many of each."""
    monkeypatch.setattr(parallel, "PIECE", 3000)
    monkeypatch.setattr(parallel, "MIN_PARALLEL", 20_000)
    monkeypatch.setattr(source, "BLOCK", 1000)
    monkeypatch.setattr(source, "DIRECT", 5000)


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_deal", None)


def derived(path: Path, workers: int | None) -> bytes:
    derivation = derive(Source(str(path)), Options(grammar="nanogpt"), workers=workers)
    return derived_bytes(assemble(derivation, run={}, header={}))


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith(("ahead", "scan"))]


def summary(engine: Engine, stretch: Stretch) -> tuple[object, ...]:
    body, lines = engine.finish(stretch)
    hits = {name: (list(h.at), list(h.line)) for name, h in body.markers.items()}
    columns = {
        key: (list(c.at), list(c.line), {name: (list(n.rows), list(n.values)) for name, n in c.numbers.items()})
        for key, c in body.rules.items()
    }
    return lines, body.records, hits, columns, stretch.size, stretch.last_bytes


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("workers", [2, 3, 8, AUTO])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_the_result_is_that_of_one_pass(pack: Callable[[bytes], bytes], workers: int, tmp_path: Path) -> None:
    log = write(tmp_path / "log", pack(LOG))
    assert derived(log, workers) == derived(log, 1)
    assert threads() == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("workers", [2, AUTO])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_pipe(pack: Callable[[bytes], bytes], workers: int, tmp_path: Path) -> None:
    wanted = derived(write(tmp_path / "log", LOG), 1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write, args=(pipe, pack(LOG)))
    writer.start()
    found = derived(pipe, workers)
    writer.join()
    assert found == wanted
    assert threads() == []


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("piece", [1, 1000, 3000, 10**9])
def test_the_size_of_the_pieces_does_not_matter(
    engine: Engine, workers: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "PIECE", piece)
    found = scan_blocks(engine, iter(BLOCKS), workers)
    assert summary(engine, found) == summary(engine, engine.scan(BLOCKS))


@pytest.mark.usefixtures("no_threads")
@pytest.mark.parametrize("workers", [None, AUTO, 1])
def test_small_logs_and_library_calls_start_no_thread(workers: int | None, tmp_path: Path) -> None:
    assert f'"size_bytes": {len(LOG)}'.encode() in derived(write(tmp_path / "log", LOG), workers)


def test_what_may_be_small_is_begun_alone(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MIN_PARALLEL", 20_000)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    dealt: list[tuple[int, int]] = []
    deal = parallel._deal

    def watched(engine: Engine, whole: Stretch, pieces: Iterator[list[bytes]], count: int) -> Stretch:
        dealt.append((whole.size, count))
        return deal(engine, whole, pieces, count)

    monkeypatch.setattr(parallel, "_deal", watched)
    for size in (None, len(LOG)):
        scan_blocks(engine, iter(BLOCKS), AUTO, size)
    scan_blocks(engine, iter(BLOCKS[:10]), AUTO)
    scan_blocks(engine, iter(BLOCKS), 3)
    assert dealt == [(20_000, 8), (0, 8), (0, 3)]


@pytest.mark.parametrize("blocks", [[], [b""], [b"hi\n"]])
def test_more_workers_than_bytes(engine: Engine, blocks: list[bytes]) -> None:
    assert summary(engine, scan_blocks(engine, iter(blocks), 8)) == summary(engine, engine.scan(blocks))


def test_few_blocks_are_in_flight(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the workers are, what was read ahead of them stays bounded."""
    monkeypatch.setattr(parallel, "PIECE", 1)
    scan = Engine.scan
    done = threading.Semaphore(0)
    ahead: list[int] = []
    taken = finished = 0

    def slow(engine: Engine, blocks: list[bytes]) -> Stretch:
        nonlocal finished
        stretch = scan(engine, blocks)
        if threading.current_thread().name.startswith("scan"):
            done.acquire(timeout=1)
            finished += 1
        return stretch

    def blocks() -> Iterator[bytes]:
        nonlocal taken
        for block in BLOCKS:
            taken += 1
            ahead.append(taken - finished)
            done.release()
            yield block

    monkeypatch.setattr(Engine, "scan", slow)
    scan_blocks(engine, blocks(), 2)
    assert max(ahead) <= 6


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_ends_all_threads(workers: int, error: type[BaseException], tmp_path: Path) -> None:
    seen = 0

    class Broken(Engine):
        def scan(self, blocks: Iterable[bytes]) -> Stretch:
            nonlocal seen
            for _ in blocks:
                seen += 1
                if seen > 10:
                    raise error
            return Stretch()

    log = Source(str(write(tmp_path / "log", LOG)))
    with pytest.raises(error) as caught:
        scan_source(Broken([get_grammar("nanogpt")], load_catalogue()), log, workers)
    assert threads() == []
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
