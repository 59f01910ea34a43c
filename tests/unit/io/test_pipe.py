"""A pipe: all its bytes at whatever pace they come, what somebody looked at before, and waits that end."""

import os
import threading
import time
from collections.abc import Iterator
from io import BufferedReader, BytesIO

import pytest

from receipt_cli.io.pipe import Pipe

DATA = bytes(range(256)) * 2000


@pytest.fixture
def ends() -> Iterator[tuple[BufferedReader, int]]:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as file:
        yield file, writer


def drip(writer: int, data: bytes, size: int, pause: float = 0.0) -> threading.Thread:
    def write() -> None:
        with os.fdopen(writer, "wb", buffering=0) as stream:
            for at in range(0, len(data), size):
                piece = data[at : at + size]
                while piece:
                    piece = piece[stream.write(piece) or 0 :]
                time.sleep(pause)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("looked", [0, 1])
@pytest.mark.parametrize("sizes", [(10, 4096, 100_000), (1,), (10_000_000,)])
def test_all_bytes_in_the_sizes_that_were_asked_for(
    ends: tuple[BufferedReader, int], sizes: tuple[int, ...], looked: int, blocking: bool
) -> None:
    file, writer = ends
    data = DATA if sizes != (1,) else DATA[:9000]
    thread = drip(writer, data, 7001)
    if looked:
        file.peek(looked)
    os.set_blocking(file.fileno(), blocking)
    pipe = Pipe.of(file)
    assert pipe is not None
    pieces: list[bytes] = []
    while piece := pipe.read(sizes[min(len(pieces), len(sizes) - 1)]):
        pieces.append(piece)
    thread.join()
    pipe.close()
    assert b"".join(pieces) == data
    assert all(len(p) == sizes[min(i, len(sizes) - 1)] for i, p in enumerate(pieces[:-1]))


def test_a_wait_ends_when_it_is_told_to(ends: tuple[BufferedReader, int]) -> None:
    file, writer = ends
    os.write(writer, b"abc")
    pipe = Pipe.of(file)
    assert pipe is not None
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(pipe.read(10)))
    thread.start()
    time.sleep(0.02)
    pipe.stop()
    thread.join(60)
    assert found == [b"abc"]
    pipe.close()
    pipe.close()
    pipe.stop()
    os.close(writer)


def test_waiting_costs_no_work(ends: tuple[BufferedReader, int]) -> None:
    file, writer = ends
    pipe = Pipe.of(file)
    assert pipe is not None
    thread = drip(writer, b"abcd", 1, 0.05)
    before = time.thread_time()
    assert pipe.read(4) == b"abcd"
    assert time.thread_time() - before < 0.05
    thread.join()
    pipe.close()


def test_what_has_no_descriptor_is_no_pipe() -> None:
    assert Pipe.of(BytesIO(b"abc")) is None
    assert Pipe.of(BufferedReader(BytesIO(b"abc"))) is None  # type: ignore[arg-type]
