"""Text that is not UTF-8 → the same text as UTF-8, for logs of consoles that write UTF-16 or the code page of a country."""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator

from receipt_cli.problems import Problem

SAMPLE = 1 << 18
"""Bytes of a log from which its encoding is found: all of a small log, enough words of a large one."""
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CODE_PAGES = {
    "gb18030": "gb18030", "gbk": "gb18030", "gb2312": "gb18030", "big5": "big5", "cp950": "cp950", "big5hkscs": "big5hkscs",
    "cp932": "cp932", "shift_jis": "cp932", "shift_jis_2004": "cp932", "shift_jisx0213": "cp932", "euc_jp": "euc_jp",
    "euc_jis_2004": "euc_jp", "euc_jisx0213": "euc_jp", "cp949": "cp949", "euc_kr": "cp949", "johab": "cp949",
}  # fmt: skip
"""Encodings of several bytes a character, by the names of the detector. Of one byte each any bytes are text: no proof."""
_ASCII = bytes(range(128))
FEW = 8
"""Bytes outside ASCII that prove no encoding: a torn character, a byte of a terminal."""


def encoding_of(sample: bytes, *, whole: bool) -> str | None:
    """Return the encoding of the text that begins with ``sample``, or None for UTF-8 and what is read as such.

    ``whole``: nothing follows the sample.
    """
    for mark, name in _MARKS.items():
        if sample.startswith(mark) and b"\0" in sample[2:4096]:  # of each blank, digit and line end: else two odd bytes
            return name
    wide = _wide(sample)
    if wide is not None:
        return wide
    if _is_text(sample, "utf-8", whole=whole) or b"\0" in sample:
        return None
    return _code_page(sample, whole=whole)


def _wide(sample: bytes) -> str | None:
    """Return the UTF-16 without a mark of a text that is mostly ASCII: each second byte is zero."""
    head = sample[:4096]
    half = len(head) // 2
    if half < FEW:
        return None
    for name, zeros, others in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if zeros.count(0) >= 0.9 * half and others.count(0) <= 0.01 * half:
            return name
    return None


def _is_text(sample: bytes, encoding: str, *, whole: bool) -> bool:
    if sample.isascii() and encoding == "utf-8":
        return True
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample, whole)
    except UnicodeDecodeError:
        return False
    return True


def _code_page(sample: bytes, *, whole: bool) -> str | None:
    """Return the code page in which all of ``sample`` is text, by its words; None where hardly any byte says so."""
    outside = len(sample.translate(None, _ASCII))
    kept = len(sample.decode("utf-8", "ignore").encode("utf-8"))
    if outside < FEW or len(sample) - kept < outside // 10:  # two bytes of a code page are often a character of UTF-8
        return None  # UTF-8 with a few torn characters
    from charset_normalizer import from_bytes  # only for what is no UTF-8

    lines = [line for line in sample.splitlines(keepends=True) if not line.isascii()]  # the last may be cut
    found = from_bytes(b"".join(lines), cp_isolation=sorted(_CODE_PAGES)).best()
    name = _CODE_PAGES.get(found.encoding) if found is not None else None
    return name if name is not None and _is_text(sample, name, whole=whole) else None


def as_utf8(blocks: Iterator[bytes], problems: list[Problem]) -> Generator[bytes, None, None]:
    """Yield the text of ``blocks`` as UTF-8, as it is where it is that, and note another encoding in ``problems``.

    The first blocks are kept until there are enough of them to know; what no character can be is U+FFFD.
    """
    head: list[bytes] = []
    size = 0
    for block in blocks:
        head.append(block)
        size += len(block)
        if size >= SAMPLE:
            break
    else:
        yield from _decoded(head, iter(()), problems, whole=True)
        return
    yield from _decoded(head, blocks, problems, whole=False)


def _decoded(head: list[bytes], rest: Iterator[bytes], problems: list[Problem], *, whole: bool) -> Generator[bytes, None, None]:
    sample = b"".join(head)[:SAMPLE]
    name = encoding_of(sample, whole=whole and sum(map(len, head)) <= SAMPLE)
    if name is None:
        yield from head
        yield from rest
        return
    problems.append(Problem("decoded_as", None, f"the text is no UTF-8: it was read as {name}", ""))
    decoder = codecs.getincrementaldecoder(name)("replace")
    for block in (*head, *rest):
        yield decoder.decode(block).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")
