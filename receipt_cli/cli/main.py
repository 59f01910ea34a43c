"""The entry point: reads the command line, runs the command and maps every error to its exit code."""

from __future__ import annotations

import sys

try:
    import errno
    import gc
    import os
    from typing import NoReturn

    from receipt_cli.cli.output import abandon_stdout, fail, print_line
    from receipt_cli.cli.reader import read
    from receipt_cli.errors import ExitCode, InputError, OutputError, ReceiptError
except KeyboardInterrupt:  # half of a short command is loading what follows
    sys.exit(130)

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ESTALE}
"""Why the system may refuse any file to any program. What lies in its name (none there, too long) is for us to expect."""
COMPLETION = "_RECEIPT_COMPLETE"
"""Environment variable by which a shell asks for completions."""


def main() -> None:
    """Run the command line; never returns."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts threads for linear algebra, of which we do none
    gc.disable()  # a short life: collecting the cycles of imports is a tenth of a cold start
    try:
        _run()
    except ReceiptError as error:
        fail(error)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except OSError as error:
        if error.errno == errno.EPIPE:
            abandon_stdout()
            sys.exit(ExitCode.NO)  # the reader of a stream has gone away
        if error.filename is None:  # a stream: files have names
            abandon_stdout()
            fail(OutputError("cannot write", why=error.strerror or str(error)))
        _refused(error)
        _bug(error)
    except Exception as error:  # the only place: a bug must not look like an answer
        _bug(error)
    finally:
        gc.freeze()  # the interpreter's last collection finds nothing to visit: another tenth


def _run() -> NoReturn:
    if os.environ.get(COMPLETION):
        from receipt_cli.cli.typer_view import complete

        complete()
    command, values = read(sys.argv[1:])
    command(**values)
    sys.exit(ExitCode.OK)


def _refused(error: OSError) -> None:
    """End with the words of the system, where it would refuse the file to any program."""
    where, why = str(error.filename), error.strerror or str(error)
    if error.errno in _FULL:
        fail(OutputError("cannot write", where=where, why=why))
    if error.errno in _REFUSED:
        fail(InputError("cannot read", where=where, why=why))


def _bug(error: Exception) -> NoReturn:
    print_line(f"receipt: error: internal error: {type(error).__name__}: {error}")
    if os.environ.get("RECEIPT_DEBUG"):
        import traceback

        print_line("".join(traceback.format_exception(error)))
    print_line("  try: report it with the output of the same command under RECEIPT_DEBUG=1")
    sys.exit(ExitCode.BUG)
