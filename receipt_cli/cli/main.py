"""The entry point: runs the command line and maps every error to its message and exit code."""

from __future__ import annotations

import errno
import gc
import os
import sys
import traceback
from typing import NoReturn

from receipt_cli.cli.output import abandon_stdout, fail, print_line
from receipt_cli.errors import ExitCode, InputError, OutputError, ReceiptError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ESTALE}
"""Reasons for which the system may refuse a file to any program; a wrong name is not among them."""


def main() -> NoReturn:
    """Run the command line; never returns."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads for linear algebra, which is not used
    gc.disable()  # a short life: collecting the cycles of imports is a tenth of a cold start
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        gc.freeze()  # the interpreter's last collection finds nothing to visit: another tenth


def _run() -> NoReturn:
    try:
        from receipt_cli.cli.app import run  # takes half of a short command, so Ctrl-C may come meanwhile

        run(sys.argv[1:])
    except ReceiptError as error:
        fail(error)
    except OSError as error:
        if error.errno == errno.EPIPE:
            abandon_stdout()
            sys.exit(ExitCode.NO)  # the reader of a stream has gone away
        if error.filename is None:  # a stream has no file name
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
    """Return the system's error as ours if it may refuse a file to any program."""
    where, why = str(error.filename), error.strerror or str(error)
    if error.errno in _FULL:
        return OutputError("cannot write", where=where, why=why)
    return InputError("cannot read", where=where, why=why) if error.errno in _REFUSED else None


def _bug(error: Exception) -> NoReturn:
    print_line(f"receipt: error: internal error: {type(error).__name__}: {error}")
    if os.environ.get("RECEIPT_DEBUG"):
        print_line("".join(traceback.format_exception(error)))
    print_line("  try: report it with the output of the same command under RECEIPT_DEBUG=1")
    sys.exit(ExitCode.BUG)
