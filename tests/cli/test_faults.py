"""What the system refuses: the right result all the same, or an error, its exit code and nothing half done."""

import errno
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.torture.hidden import lines
from benchmarks.torture.works import judge
from receipt_cli.batch import worker as work
from receipt_cli.batch.model import Failure, Manner, Task
from receipt_cli.errors import DataError
from receipt_cli.io import source

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, limits and signals as Linux has them")
ROOT = Path(__file__).resolve().parents[2]
LOG = b"".join(lines())


def torture(module: str, *arguments: str) -> str:
    """Run one of the tools that inject faults; return its table."""
    command = [sys.executable, "-m", f"benchmarks.torture.{module}", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("command", ["parse -o", "export", "store add", "report"])
def test_an_operation_that_fails(command: str) -> None:
    table = torture("injected", "--only", command, "--each", "1").splitlines()[1].removeprefix(command).split()
    faults, unharmed, wrong = int(table[0]), int(table[1]), int(table[-1])
    assert wrong == 0
    assert 0 < unharmed < faults


@pytest.mark.parametrize("command", ["parse -o", "store add"])
def test_a_signal_at_a_random_moment(command: str) -> None:
    assert torture("signals", "--only", command, "--times", "6").splitlines()[1].split()[-1] == "0"


OLD, NEW, HALF = {"a": b"old"}, {"a": b"new"}, {"a": b"ne"}


@pytest.mark.parametrize(
    ("code", "said", "made", "fault"),
    [
        (0, "", NEW, None),
        (6, "receipt: error", OLD, None),
        (6, "receipt: error", NEW, None),
        (6, "receipt: error", HALF, "other than it must be"),
        (6, "receipt: error", {}, "other than it must be"),
        (6, "receipt: error", {**OLD, "a.tmp": b""}, "a.tmp is other"),
        (0, "", OLD, "not all was made"),
        (6, "", OLD, "without a word"),
        (70, "Traceback (most", OLD, "a traceback"),
        (-11, "", OLD, "died of signal 11"),
    ],
)
def test_how_an_end_is_judged(code: int, said: str, made: dict[str, bytes], fault: str | None) -> None:
    found = judge(code, said, made, NEW, OLD)
    assert found is None if fault is None else fault in str(found)


@pytest.fixture(scope="module")
def large() -> bytes:
    """More than is read before threads read ahead."""
    return b"".join(b"iter %d: loss 2.0000, time 100.00ms, mfu 40.00%%\n" % n for n in range(100_000))


def refuse(error: int) -> Callable[..., Any]:
    def call(*_: Any, **__: Any) -> Any:
        raise OSError(error, os.strerror(error))

    return call


def no_second_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = os.fork, []

    def fork() -> int:
        calls.append(1)
        return real() if len(calls) == 1 else refuse(errno.EAGAIN)()

    monkeypatch.setattr(os, "fork", fork)


def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


REFUSALS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "no process": lambda monkeypatch: monkeypatch.setattr(os, "fork", refuse(errno.EAGAIN)),
    "one process": no_second_fork,
    "no thread": no_thread,
    "no semaphore": lambda monkeypatch: monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", refuse(errno.ENOSPC)),
}


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("what", REFUSALS)
def test_fewer_workers_than_asked_for(
    what: str, workers: str, large: bytes, tmp_path: Path, invoke: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.log").write_bytes(large)
    wanted = invoke("parse", tmp_path / "run.log", "--json", "--workers", "1")
    with monkeypatch.context() as patched:
        REFUSALS[what](patched)
        done = invoke("parse", tmp_path / "run.log", "--json", "--workers", workers)
    assert (done.code, done.stdout) == (0, wanted.stdout), done.stderr
    assert done.document["summary"]["steps"]["record_count"] == 100_000


def test_a_pipe_that_nobody_has_room_for(large: bytes, invoke: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = invoke("parse", "-", "--json", stdin=large).stdout
    monkeypatch.setattr(source, "SPOOLED", 1000)
    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", refuse(errno.ENOSPC))
    done = invoke("parse", "-", "--json", stdin=large)
    assert (done.code, done.stdout) == (0, wanted)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "run.log"
    path.write_bytes(LOG)
    return path


@pytest.fixture(scope="module")
def wanted(log: Path) -> bytes:
    return parsed(log)


def parsed(log: Path, *, less: tuple[str, ...] = (), limit: tuple[int, int] | None = None, **more: str) -> bytes:
    """Return the receipt that a process of its own prints."""
    import resource

    environ = {key: value for key, value in os.environ.items() if key not in less}
    done = subprocess.run(
        [sys.executable, "-m", "receipt_cli", "parse", log, "--json"],
        env={**environ, "PYTHONPATH": str(ROOT), **more},
        capture_output=True,
        preexec_fn=(lambda: resource.setrlimit(limit[0], (limit[1], limit[1]))) if limit is not None else None,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (("HOME",), {}),
        ((), {"TMPDIR": "/nowhere"}),
        (("LANG", "LC_ALL"), {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        ((), {"HOME": "/dev/null"}),
    ],
    ids=["no home", "no TMPDIR", "locale C", "home is a device"],
)
def test_the_same_receipt(log: Path, wanted: bytes, less: tuple[str, ...], more: dict[str, str]) -> None:
    assert parsed(log, less=less, **more) == wanted


def test_nothing_is_written_to_the_home(log: Path, wanted: bytes, tmp_path: Path) -> None:
    empty = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    assert parsed(log, less=empty, HOME=str(tmp_path)) == wanted
    assert list(tmp_path.iterdir()) == []


def test_eight_files_open(log: Path, wanted: bytes) -> None:
    import resource

    assert parsed(log, limit=(resource.RLIMIT_NOFILE, 8)) == wanted


def test_a_quota(log: Path, tmp_path: Path, process: Callable[..., Any]) -> None:
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    out = tmp_path / "out" / "run.receipt.json"
    out.parent.mkdir()
    out.write_bytes(b"old")
    done = process("parse", log, "-o", out, preexec_fn=limit)
    assert done.code == 6
    assert "cannot write" in done.stderr and "File too large" in done.stderr
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    assert out.read_bytes() == b"old"


class TestStoreThatCannotBeRead:
    """A receipt that the system keeps from us is no receipt less: an answer without it would be of another store."""

    @pytest.fixture
    def store(self, tmp_path: Path, invoke: Callable[..., Any]) -> Path:
        for number in range(2):
            (tmp_path / "run.log").write_bytes(b"".join(lines()[: 400 - number]))
            assert invoke("parse", tmp_path / "run.log", "-o", tmp_path / "run.json", "--lane", "a").code == 0
            assert invoke("store", "add", tmp_path / "store", tmp_path / "run.json").code == 0
        return tmp_path / "store"

    @pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE, errno.EACCES])
    def test_nothing_is_answered(
        self, store: Path, tmp_path: Path, invoke: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, error: int
    ) -> None:
        first = min(store.rglob("*.1.json"))

        def refusing(path: str | Path, mode: str) -> Any:
            if Path(path) == first:
                refuse(error)()
            return open(path, mode)

        monkeypatch.setattr("receipt_cli.io.file_kinds.open", refusing, raising=False)
        done = invoke("report", store, "-o", tmp_path / "report.html")
        assert done.code == 3
        assert "cannot read the store" in done.stderr and os.strerror(error) in done.stderr
        assert not (tmp_path / "report.html").exists()

    def test_what_is_no_receipt_is_passed_over(self, store: Path, tmp_path: Path, invoke: Callable[..., Any]) -> None:
        min(store.rglob("*.1.json")).write_bytes(b"{")
        done = invoke("report", store, "-o", tmp_path / "report.html")
        assert done.code == 0
        assert "is skipped" in done.stderr


def test_a_definition_that_cannot_be_read_is_no_fault_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def fingerprint(folders: object) -> str:
        raise DataError("cannot be read", where="grammars/index.yaml") from OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(work, "definitions_fingerprint", fingerprint)
    failed = work.derive_receipt(Task("0" * 64, (), "store", "", Manner()))
    assert isinstance(failed, Failure)
    assert (failed.exit_code, failed.fatal) == (5, True)


@pytest.mark.parametrize(("error", "code"), [(errno.EIO, 3), (errno.EACCES, 3), (errno.ENOSPC, 6), (errno.ENAMETOOLONG, 70)])
def test_what_the_system_refuses_is_no_bug_of_ours(
    error: int, code: int, tmp_path: Path, invoke: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise OSError(error, os.strerror(error), "a/file")

    (tmp_path / "run.log").write_bytes(LOG)
    monkeypatch.setattr("receipt_cli.cli.commands.parse.produce", fail)
    done = invoke("parse", tmp_path / "run.log")
    assert done.code == code
    assert os.strerror(error) in done.stderr and "a/file" in done.stderr
    assert ("internal error" in done.stderr) == (code == 70)
