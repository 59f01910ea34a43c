"""What runs ahead: the same items and errors in the same order, few of them at a time, and no thread that stays."""

import gc
import threading
import time
from collections.abc import Generator, Iterator

import pytest

from receipt_cli.io.pipe import Ahead


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    yield
    gc.collect()
    assert [t.name for t in threading.enumerate() if t.name == "ahead"] == []


def numbers(count: int, error: BaseException | None = None) -> Generator[int, None, None]:
    yield from range(count)
    if error is not None:
        raise error


@pytest.mark.parametrize("count", [0, 1, 100])
@pytest.mark.parametrize("depth", [1, 3])
def test_all_items_in_order(count: int, depth: int) -> None:
    assert list(Ahead(numbers(count), depth=depth)) == list(range(count))


@pytest.mark.parametrize("error", [OSError(5, "gone"), KeyboardInterrupt(), SystemExit(3)])
def test_an_error_comes_after_the_items_before_it(error: BaseException) -> None:
    ahead = Ahead(numbers(10, error))
    seen: list[int] = []
    with pytest.raises(type(error)) as caught:
        for number in ahead:
            seen.append(number)  # noqa: PERF402  # what came before counts
    assert caught.value is error
    assert seen == list(range(10))
    assert list(ahead) == []
    ahead.close()


def test_it_is_ahead_but_not_far() -> None:
    made: list[int] = []

    def items() -> Generator[int, None, None]:
        for number in range(100):
            made.append(number)
            yield number

    ahead = Ahead(items(), depth=3)
    deadline = time.monotonic() + 60
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert len(made) == 4
    assert next(ahead) == 0
    ahead.close()
    assert len(made) <= 6
    assert list(ahead) == []


def test_closing_early_closes_the_items_in_their_own_thread() -> None:
    closed: list[str] = []

    def items() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            closed.append(threading.current_thread().name)

    ahead = Ahead(items())
    next(ahead)
    ahead.close()
    ahead.close()
    assert closed == ["ahead"]


def test_a_wait_below_is_interrupted_through_two_stages() -> None:
    never = threading.Event()

    def items() -> Generator[int, None, None]:
        yield 1
        never.wait(600)
        yield 2

    below = Ahead(items(), interrupt=never.set)

    def passed() -> Generator[int, None, None]:
        yield from below

    ahead = Ahead(passed(), interrupt=below.close)
    assert next(ahead) == 1
    ahead.close()
    assert never.is_set()
    assert list(ahead) == []
