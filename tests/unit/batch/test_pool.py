"""Worker processes that die cost nobody but the item that killed them."""

import errno
import os
import signal
import sys
import time
from collections.abc import Generator, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest

from receipt_cli.batch.model import InTwoParts, Lost
from receipt_cli.batch.pool import CHUNK_ITEMS, OUT_OF_MEMORY, LocalPool, limit_memory, machine_memory, share_of


def work(item: str) -> str:
    """Do what ``item`` says."""
    what, _, rest = item.partition(" ")
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "exit":
        os._exit(int(rest))
    if what == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "once":
        path = Path(rest)
        if not path.exists():
            path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    if what == "raise":
        raise ValueError(rest)
    if what == "swallow":
        raise MemoryError
    if what == "sleep":
        time.sleep(float(rest))
    return f"{what} done"


BEGUN: list[str] = []


@InTwoParts
def work_in_two_parts(item: str) -> Generator[None, None, str]:
    """Do what ``item`` says, some of it when the next item has begun; answer with what had begun by the end."""
    BEGUN.append(item)
    if item == "at once":
        return "done"
    if not item.startswith("raise late"):
        work(item)
    yield
    if item.startswith("raise late"):
        raise ValueError(item)
    return " ".join(BEGUN[-2:])


@pytest.fixture
def pool() -> Iterator[LocalPool]:
    made = LocalPool(2)
    yield made
    made.close()


def answers(pool: LocalPool, items: list[str]) -> dict[int, str | Lost]:
    return dict(pool.run(work, items, [1] * len(items)))


def test_every_item_is_answered(pool: LocalPool) -> None:
    items = [f"item{n}" for n in range(100)]
    assert answers(pool, items) == {n: f"item{n} done" for n in range(100)}
    assert answers(pool, items[:3]) == {n: f"item{n} done" for n in range(3)}
    assert answers(pool, []) == {}


def who(item: float) -> int:
    """Take so many seconds, and tell which process it is."""
    time.sleep(item)
    return os.getpid()


def test_items_of_a_kind_are_the_same_workers(pool: LocalPool) -> None:
    kinds = [n % 2 for n in range(200)]
    found = dict(pool.run(who, [0.005] * 200, [1] * 200, kinds))
    assert sorted(found) == list(range(200))
    first, second = ({worker for n, worker in found.items() if n % 2 == kind and n < 2 * CHUNK_ITEMS} for kind in (0, 1))
    assert len(first) == len(second) == 1 and first != second


def test_a_worker_without_items_of_its_kinds_helps_the_others(pool: LocalPool) -> None:
    found = dict(pool.run(who, [0.005] * 200, [1] * 200, [7] * 200))
    assert sorted(found) == list(range(200))
    assert len(set(found.values())) == 2


@pytest.mark.parametrize(
    ("killer", "why"),
    [("die", "SIGKILL"), ("segfault", "SIGSEGV"), ("exit 5", "status 5"), ("swallow", "memory")],
)
def test_what_kills_its_worker_twice_is_given_up_and_all_else_is_done(pool: LocalPool, killer: str, why: str) -> None:
    items = [f"item{n}" for n in range(40)]
    items[7] = killer
    found = answers(pool, items)
    lost = found.pop(7)
    assert isinstance(lost, Lost) and why in lost.why
    assert found == {n: f"item{n} done" for n in range(40) if n != 7}


def test_what_kills_its_worker_once_is_done_the_second_time(pool: LocalPool, tmp_path: Path) -> None:
    assert answers(pool, ["a", f"once {tmp_path / 'mark'}", "b"]) == {0: "a done", 1: "once done", 2: "b done"}


def test_several_killers(pool: LocalPool) -> None:
    found = answers(pool, ["die", "a", "die", "die", "b"])
    assert [isinstance(found[n], Lost) for n in range(5)] == [True, False, True, True, False]


def test_what_the_work_raises_is_raised(pool: LocalPool) -> None:
    with pytest.raises(ValueError, match="of its own"):
        answers(pool, ["a", "raise of its own"])


def test_closing_ends_work_that_goes_on(pool: LocalPool) -> None:
    running = pool.run(work, ["now", "sleep 3600", "sleep 3600"], [1, 1, 1])
    next(running)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 1800


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system does not say")
def test_memory_is_shared_out_and_bounded() -> None:
    whole = machine_memory()
    assert whole is not None
    assert share_of(1) <= whole  # type: ignore[operator]
    assert share_of(10_000) == share_of(100_000)  # never less than one needs


def greedy(size: int) -> int:
    """Use so many bytes, in a process that may have fewer."""
    limit_memory(512 << 20)
    return len(bytearray(size))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of data are Linux's")
def test_a_worker_that_needs_too_much_memory_ends_and_the_machine_goes_on(pool: LocalPool) -> None:
    small, large = dict(pool.run(greedy, [1 << 20, 2 << 30], [1, 1])).values()
    assert small == 1 << 20
    assert isinstance(large, Lost)
    assert OUT_OF_MEMORY == 86


@pytest.mark.skipif(sys.platform == "win32", reason="workers are not copied there")
def test_the_process_that_workers_are_copied_from_may_die() -> None:
    first, second = LocalPool(1), LocalPool(1)
    try:
        assert dict(first.run(work, ["a"], [1])) == {0: "a done"}
        for child in psutil.Process().children():
            if any("forkserver" in part for part in child.cmdline()):
                child.kill()
        assert dict(second.run(work, ["b", "c"], [1, 1])) == {0: "b done", 1: "c done"}
    finally:
        first.close()
        second.close()


def test_work_that_cannot_be_handed_over_is_handed_to_another(pool: LocalPool, monkeypatch: pytest.MonkeyPatch) -> None:
    real, refusals = Connection.send, [OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))]

    def send(self: Connection, item: object) -> None:
        if refusals:
            raise refusals.pop()
        real(self, item)

    monkeypatch.setattr(Connection, "send", send)
    assert answers(pool, ["a", "b", "c"]) == {0: "a done", 1: "b done", 2: "c done"}


def test_work_in_two_parts_ends_when_the_next_has_begun() -> None:
    pool = LocalPool(1)
    try:
        items = [f"{letter}" for letter in "abcdef"] + ["at once"]
        found = dict(pool.run(work_in_two_parts, items, [1] * len(items)))
        assert set(found) == set(range(7))
        assert "a b" in found.values()
        assert found[6] == "done"
        assert dict(pool.run(work_in_two_parts, ["exit 86", *items], [1] * 8))[0] == Lost(
            "it needs more memory than this machine can give"
        )
        for late in ("raise late", "raise early"):
            with pytest.raises(ValueError, match=late.partition(" ")[2]):
                list(pool.run(work_in_two_parts, ["a", late, "b"], [1] * 3))
    finally:
        pool.close()
    assert work_in_two_parts("x").endswith("x")
