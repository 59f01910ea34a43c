"""Recognise files that are not logs by their first bytes, to name the command that reads them."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from receipt_cli.errors import InputError
from receipt_cli.io.discovery import document_kind, is_store
from receipt_cli.patterns import compile_later


class FileKind(NamedTuple):
    """A kind of file, and the command that reads it (``{0}`` is the file's name); empty if no command does."""

    what: str
    way: str = ""
    is_document: bool = False


_CHECKPOINT = FileKind("a checkpoint", "receipt parse LOG, the text that the job printed")
_EXECUTABLE = FileKind("an executable", "receipt run --log run.log -- {0}")
_IMAGE = FileKind("an image", "receipt parse LOG, the text that the job printed")
_MAGIC = {
    b"PK\x03\x04": FileKind("a zip archive", "unzip -p {0} | receipt parse -"),
    b"7z\xbc\xaf\x27\x1c": FileKind("a 7z archive", "7z x -so {0} | receipt parse -"),
    b"\x04\x22\x4d\x18": FileKind("compressed with lz4", "lz4 -dc {0} | receipt parse -"),
    b"\x1f\x9d": FileKind("compressed with compress", "gzip -dc {0} | receipt parse -"),
    b"\x1f\xa0": FileKind("compressed with compress", "gzip -dc {0} | receipt parse -"),
    b"\x7fELF": _EXECUTABLE,
    b"\xcf\xfa\xed\xfe": _EXECUTABLE,
    b"\xca\xfe\xba\xbe": _EXECUTABLE,
    b"SQLite format 3\0": FileKind("an SQLite database", "receipt import {0}, if it is MLflow's"),
    b"PAR1": FileKind("a Parquet file", "receipt report STORE --series-from FOLDER"),
    b":W&B": FileKind("a run file of W&B", "receipt import {0}"),
    b"receipt-times/1\n": FileKind("the file of times beside a log", "receipt parse LOG, or receipt schema check {0}"),
    b'{"version": "receipt-gpu/': FileKind("the file of samples beside a log", "receipt parse LOG, or receipt schema check {0}"),
    b"%PDF-": FileKind("a PDF", "receipt parse LOG, the text that the job printed"),
    b"\x89PNG\r\n": _IMAGE,
    b"\xff\xd8\xff": _IMAGE,
    b"\x89HDF\r\n": _CHECKPOINT,
    b"\x93NUMPY": FileKind("a NumPy array", "receipt parse LOG, the text that the job printed"),
    b"\x80\x02\x8a\nl\xfc": _CHECKPOINT,  # torch.save before its archives
    b"\x80\x04\x95": FileKind("a pickle", "receipt parse LOG, the text that the job printed"),
}
_DOCUMENTS = {
    "receipt": FileKind("a receipt", "receipt show {0}", True),
    "header": FileKind("a header", "receipt parse LOG --header {0}", True),
}
_ATTESTATION = FileKind("an attestation", "receipt verify RECEIPT LOG --attestation {0} --signer KEY")
_BUNDLE = FileKind("a bundle of sigstore", "receipt verify RECEIPT LOG --attestation {0} --identity NAME --issuer URL")
_NOTEBOOK = FileKind("a notebook", "jupyter nbconvert --to markdown --stdout {0} | receipt parse -")
_EVENTS = FileKind("an event file of TensorBoard", "receipt import {0}")
_PAGE = FileKind("a page of HTML", "receipt parse LOG, or open it in a browser")

_JSON = compile_later(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(cells|nbformat|metadata|payload|payloadType|mediaType)"\s*:')
_HTML = compile_later(rb"(?i)(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html)[\s>]")


def recognise(head: bytes) -> FileKind | None:
    """Return the kind of a file by its first 4 KiB; None if it may be a log."""
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return _CHECKPOINT if magic[:2] == b"PK" and b"/data.pkl" in head else kind
    if head.startswith(b"MZ") and b"\0" in head[:64]:
        return _EXECUTABLE
    if b"brain.Event:" in head[:64]:
        return _EVENTS
    if head[8:10] == b'{"' and 8 < int.from_bytes(head[:8], "little") < 1 << 30:
        return _CHECKPOINT  # safetensors: length of the JSON header, then the header
    document = document_kind(head)
    if document is not None:
        return _DOCUMENTS.get(document) or FileKind(f"a document ({document})", "receipt show {0}", True)
    found = _JSON.match(head)
    if found is not None:
        if b"vnd.dev.sigstore.bundle" in head:
            return _BUNDLE
        if b'"payloadType"' in head or found[1] == b"payload":
            return _ATTESTATION
        return _NOTEBOOK if b'"cell_type"' in head or b'"nbformat"' in head else None
    return _PAGE if _HTML.match(head) else None


class SpecialFile(OSError):
    """A named pipe, socket or device instead of a regular file: reading it might block forever."""


def read_regular(path: str | Path, most: int = -1) -> bytes:
    """Return a file's bytes, or the first ``most``. Raises ``OSError``; ``SpecialFile`` for a named pipe, socket or device."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise SpecialFile(errno.EINVAL, "not a regular file", str(path))
    with open(path, "rb") as file:
        return file.read(most)


def read_file(path: str | Path, most: int | None = None) -> bytes:
    """Return the bytes of a small file other than a log. Raises ``InputError``, also for more than ``most`` bytes."""
    try:
        with open(path, "rb") as file:
            data = file.read() if most is None else file.read(most + 1)
    except IsADirectoryError as error:
        store = is_store(str(path))
        way = f"receipt store ls {path}" if store else f"receipt parse {path}, if its files are the log of one run"
        what = "is a store, not a file" if store else "is a folder, not a file"
        raise InputError(what, where=str(path), try_=way) from error
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        raise InputError("cannot read", where=str(path), why=getattr(error, "strerror", None) or str(error)) from error
    if most is not None and len(data) > most:
        raise InputError("is too large", where=str(path), why=f"over {most} bytes")
    return data


@contextmanager
def refusing(where: str, also: type[Exception] = OSError) -> Iterator[None]:
    """Turn system errors, and ``also``, into ``InputError``."""
    try:
        yield
    except IsADirectoryError as error:
        raise InputError("is a directory, not a log", where=where, try_="name one log file") from error
    except FileNotFoundError as error:
        raise no_log(where) from error
    except (OSError, also) as error:
        raise InputError("cannot read the log", where=where, why=getattr(error, "strerror", None) or str(error)) from error


def no_log(path: str) -> InputError:
    """Return the error of a path where there is no file."""
    if "://" in path:
        return InputError("a log is a file, not a URL", where=path, try_=f"curl -sL {shlex.quote(path)} | receipt parse -")
    if os.path.islink(path):
        return InputError("the link has no file", where=path, why=f"it points to {os.readlink(path)}")
    return InputError("no such log", where=path)
