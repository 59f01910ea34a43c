"""The entry point: reads the command line, runs the command and maps every error to its exit code."""

from __future__ import annotations

import errno
import gc
import os
import sys

TYPE_CHECKING = False  # typing itself is imported where Ctrl-C is caught
if TYPE_CHECKING:
    from typing import NoReturn

    from receipt_cli.errors import ReceiptError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ESTALE}
"""Why the system may refuse any file to any program. What lies in its name (none there, too long) is for us to expect."""
INTERRUPTED = 130
"""``ExitCode.INTERRUPTED``: half of a short command is loading modules, that of exit codes among them."""


def main() -> NoReturn:
    """Run the command line; never returns."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts threads for linear algebra, of which we do none
    gc.disable()  # a short life: collecting the cycles of imports is a tenth of a cold start
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        gc.freeze()  # the interpreter's last collection finds nothing to visit: another tenth


def command() -> NoReturn:
    """Run the command line as a program of its own, and leave it to the system to free what it used: a twentieth of a start."""
    try:
        main()
    except SystemExit as ended:
        threading = sys.modules.get("threading")
        alone = threading is None or threading.active_count() == 1
        if isinstance(ended.code, int) and alone and "multiprocessing" not in sys.modules:
            _leave(ended.code)
        raise
    raise AssertionError("main returned")


def _leave(code: int) -> None:
    """End the process with ``code`` after what must be done at its end; returns where that fails."""
    import atexit

    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # closed, or nobody reads: the interpreter reports it as always
        return
    os._exit(code)


def _run() -> NoReturn:
    """Run the command and exit; every error becomes a message and an exit code."""
    from receipt_cli.cli.output import abandon_stdout, fail
    from receipt_cli.cli.reader import read
    from receipt_cli.errors import ExitCode, OutputError, ReceiptError

    try:
        if os.environ.get("_RECEIPT_COMPLETE"):
            from receipt_cli.cli.typer_view import complete

            complete(os.environ["_RECEIPT_COMPLETE"])
        command, values = read(sys.argv[1:])
        command(**values)
    except ReceiptError as error:
        fail(error)
    except OSError as error:
        if error.errno == errno.EPIPE:
            abandon_stdout()
            sys.exit(ExitCode.NO)  # the reader of a stream has gone away
        if error.filename is None:  # a stream: files have names
            abandon_stdout()
            fail(OutputError("cannot write", why=error.strerror or str(error)))
        refusal = _refusal(error)
        if refusal is not None:
            fail(refusal)
        _bug(error)
    except Exception as error:  # the only place: a bug must not look like an answer
        _bug(error)
    sys.exit(ExitCode.OK)


def _refusal(error: OSError) -> ReceiptError | None:
    """Return the error in the words of the system, where it would refuse the file to any program."""
    from receipt_cli.errors import InputError, OutputError

    where, why = str(error.filename), error.strerror or str(error)
    if error.errno in _FULL:
        return OutputError("cannot write", where=where, why=why)
    return InputError("cannot read", where=where, why=why) if error.errno in _REFUSED else None


def _bug(error: Exception) -> NoReturn:
    from receipt_cli.cli.output import print_line
    from receipt_cli.errors import ExitCode

    print_line(f"receipt: error: internal error: {type(error).__name__}: {error}")
    if os.environ.get("RECEIPT_DEBUG"):
        import traceback

        print_line("".join(traceback.format_exception(error)))
    print_line("  try: report it with the output of the same command under RECEIPT_DEBUG=1")
    sys.exit(ExitCode.BUG)
