"""Read the whole text of a foreign document, up to a size limit, from a path or stdin, with its digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from receipt_cli.errors import InputError
from receipt_cli.io.source import Source

MAX_BYTES = 64 << 20
"""Largest document in bytes; it is read as a whole."""
MAX_SIDECAR = 8 << 20
"""Largest file beside the document that is read, in bytes."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document after reading: ``name`` is for messages; digest and size are of its decompressed bytes."""

    name: str
    text: str
    sha256: str
    size_bytes: int

    @property
    def line_count(self) -> int:
        """Number of lines, including a last line without a newline."""
        return self.text.count("\n") + (1 if self.text and not self.text.endswith("\n") else 0)


def read_document(path: str) -> Document:
    """Return the text of ``path`` (``-``: stdin), decompressed. Raises ``InputError``."""
    source = Source(path, document=True)
    blocks: list[bytes] = []
    try:
        for block in source.blocks():
            blocks.append(block)
            if source.size_bytes > MAX_BYTES:
                raise InputError("is too large for a document of one run", where=source.name, why=f"over {MAX_BYTES} bytes")
    finally:
        source.close()
    for problem in source.problems:
        raise InputError("is damaged", where=source.name, why=problem.detail)
    data = b"".join(blocks)
    if not data.strip():
        raise InputError("the document is empty", where=source.name)
    return Document(source.name, _decode(data, source.name), source.sha256, source.size_bytes)


def read_beside(path: str, name: str) -> Document | None:
    """Return the text of the file ``name`` in the folder of ``path``; None if it is missing, too large or unreadable."""
    if path == "-":
        return None
    try:
        with Path(path).with_name(name).open("rb") as file:
            data = file.read(MAX_SIDECAR + 1)
        if len(data) > MAX_SIDECAR:
            return None
        return Document(name, _decode(data, name), hashlib.sha256(data).hexdigest(), len(data))
    except (OSError, ValueError, InputError):
        return None


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8", where=name, why=str(error)[:200]) from error
