"""What every test sees: a quiet, foreign environment, repeatable properties and golden files."""

import gc
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.tools.slow import is_slow

# What started us may ignore signals (nohup, a job in the background), and then so would all that tests start.
for _name in ("SIGHUP", "SIGQUIT", "SIGTERM"):
    if signal.getsignal(getattr(signal, _name)) == signal.SIG_IGN:
        signal.signal(getattr(signal, _name), signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("repeatable", settings.get_profile("explore"), derandomize=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-goldens", action="store_true", help="write golden files instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
    for name in [name for name in os.environ if name.startswith("RECEIPT_") and name != "RECEIPT_KERNEL"]:
        del os.environ[name]
    os.environ.update(TZ="Pacific/Chatham", NO_COLOR="1", COLUMNS="80")  # an odd zone: no figure may depend on it
    time.tzset()
    # Thousands of files are written, and none has to survive a loss of power. Programs that tests start do flush.
    pytest.MonkeyPatch().setattr(os, "fsync", lambda descriptor: None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        function = getattr(item, "originalname", None) or item.name
        if is_slow(item.path.relative_to(ROOT / "tests").as_posix(), function, item.name):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    gc.freeze()  # thousands of tests, which no collection needs to visit


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def rewrite_goldens(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written (``make goldens``)."""
    return bool(request.config.getoption("--rewrite-goldens"))


@pytest.fixture(scope="session")
def check_golden(rewrite_goldens: bool) -> Callable[[Path, bytes], None]:
    """Compare bytes with a golden file, or write the file with ``--rewrite-goldens``."""

    def check(path: Path, content: bytes) -> None:
        if rewrite_goldens:
            path.write_bytes(content)
        else:
            assert path.is_file(), f"{path} is missing: run `make goldens` and review the diff"
            assert content.decode() == path.read_bytes().decode(), f"{path} differs: run `make goldens`"

    return check


OWN_ENGINES = re.compile(r"golden/test_logs|unit/scan/|property/test_(layouts|splits|naming|relays|runs)")
"""Tests in which each log has an engine of its own."""


@pytest.fixture(scope="module", autouse=True)
def one_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let logs that this process reads one by one be read by one engine, as those of a batch are: it is made once.

    ``tests/golden/test_logs.py``, with an engine for each log, and ``tests/golden/test_verify.py``, with this one, hold both
    against the same receipts.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not OWN_ENGINES.search(request.path.as_posix()):
            patch.setattr("receipt_cli.derive.Engine", _kept_engine)
        yield


_engines: list[Any] = []
"""The engine of the grammars that ship, with what it learned of the lines of earlier logs."""


def _kept_engine(grammars: Sequence[Any], catalogue: Any) -> Any:
    from receipt_cli.scan.engine import Engine, load_kernel

    for engine in _engines:
        if engine.grammars == tuple(grammars) and engine.catalogue is catalogue and engine.native is load_kernel():
            return engine
    made = Engine(grammars, catalogue)
    if len(made.grammars) > 1:  # all that ship: one grammar is another one in each test
        _engines[:] = [made]
    return made


@pytest.fixture(scope="session", autouse=True)
def endless_or_not() -> Iterator[None]:
    """Let a search take no time for the lint if it ends, and a minute if it does not: no finding depends on this machine.

    ``make lint-grammars`` measures.
    """
    from receipt_cli.authoring import redos

    spent, read = 0.0, redos.extract

    def extract(rule: Any, record: bytes) -> Any:
        nonlocal spent
        try:
            return read(rule, record)
        except redos.PatternTimeout:
            spent += 60.0
            raise

    clock = SimpleNamespace(process_time=lambda: spent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redos, "extract", extract)
        patch.setattr(redos, "time", clock)
        patch.setattr(redos, "SCREEN_BYTES", 512)
        yield


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A memory cgroup that may hold 700 MiB, to be entered by writing a process id to its ``cgroup.procs``."""
    for name, limit in (("memory/receipt-test", "memory.limit_in_bytes"), ("receipt-test", "memory.max")):
        made = Path("/sys/fs/cgroup", f"{name}-{os.getpid()}")
        try:
            made.mkdir()
            (made / limit).write_text(str(700 << 20))
        except OSError:
            if made.is_dir():
                made.rmdir()
            continue
        yield made
        for _ in range(100):
            try:
                return made.rmdir()
            except OSError:  # processes of it are still ending
                time.sleep(0.1)
        return None
    pytest.skip("no memory cgroup can be made here")
