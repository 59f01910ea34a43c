"""Detect UTF-16 and multi-byte code pages, as consoles write them, and decode them to UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator

from receipt_cli.problems import Problem

SAMPLE = 1 << 18
"""Bytes from which a log's encoding is detected: all of a small log, enough words of a large one."""
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CODE_PAGES = {
    "gb18030": "gb18030", "gbk": "gb18030", "gb2312": "gb18030", "big5": "big5", "cp950": "cp950", "big5hkscs": "big5hkscs",
    "cp932": "cp932", "shift_jis": "cp932", "shift_jis_2004": "cp932", "shift_jisx0213": "cp932", "euc_jp": "euc_jp",
    "euc_jis_2004": "euc_jp", "euc_jisx0213": "euc_jp", "cp949": "cp949", "euc_kr": "cp949", "johab": "cp949",
}  # fmt: skip
"""The detector's name → codec, multi-byte only: in a single-byte encoding any bytes are text, which proves nothing."""
_ASCII = bytes(range(128))
FEW = 8
"""Fewest bytes outside ASCII that prove an encoding: less may be a torn character or terminal noise."""


def encoding_of(sample: bytes, *, whole: bool) -> str | None:
    """Return the encoding of a text that begins with ``sample``; None for UTF-8 and for text read as UTF-8.

    ``whole``: the sample is the whole text.
    """
    for mark, name in _MARKS.items():
        if sample.startswith(mark) and b"\0" in sample[2:4096]:  # blanks, digits and line ends have a zero byte
            return name
    wide = _wide(sample)
    if wide is not None:
        return wide
    if _is_text(sample, "utf-8", whole=whole) or b"\0" in sample:
        return None
    return _code_page(sample, whole=whole)


def _wide(sample: bytes) -> str | None:
    """Return the UTF-16 variant without byte order mark if every second byte is zero, as in text that is mostly ASCII."""
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
    """Return the code page that decodes all of ``sample``, chosen by its words; None if too few bytes support it."""
    outside = len(sample.translate(None, _ASCII))
    kept = len(sample.decode("utf-8", "ignore").encode("utf-8"))
    if outside < FEW or len(sample) - kept < outside // 10:  # code page bytes may form UTF-8 characters by chance
        return None  # torn UTF-8
    from charset_normalizer import from_bytes  # only for what is no UTF-8

    lines = [line for line in sample.splitlines(keepends=True) if not line.isascii()]  # the last may be cut
    found = from_bytes(b"".join(lines), cp_isolation=sorted(_CODE_PAGES)).best()
    name = _CODE_PAGES.get(found.encoding) if found is not None else None
    return name if name is not None and _is_text(sample, name, whole=whole) else None


def as_utf8(blocks: Iterator[bytes], problems: list[Problem]) -> Generator[bytes, None, None]:
    """Yield the text of ``blocks`` as UTF-8; report any other encoding in ``problems``.

    Holds the first blocks back until the encoding is known. Bytes that decode to no character become U+FFFD.
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
    problems.append(Problem("decoded_as", None, f"the text is not UTF-8; decoded as {name}", ""))
    decoder = codecs.getincrementaldecoder(name)("replace")
    for block in (*head, *rest):
        yield decoder.decode(block).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")
