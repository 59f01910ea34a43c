"""Make log text safe for a receipt: valid UTF-8, no control sequences, no secrets, bounded."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from receipt_cli.patterns import compile_later
from receipt_cli.problems import MAX_EXCERPT
from receipt_cli.records.split import display_lines
from receipt_cli.redaction.mask import cut_text, mask_field, mask_secrets

TAIL_LINES = 50
TAIL_BYTES = 8 * 1024
"""Most lines and UTF-8 bytes of the end of a failed run's log in a receipt."""
_CONTROL = compile_later("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_CUT = compile_later(rb"\A(?:[^\n]{0,4096}\n|[\s\S]{0,1024}\S*)")
"""Text that may begin inside a secret: the first line, or the first words of an endless one."""
_SEQUENCE = compile_later("\x1b\\[[0-?]*+[ -/]*+[@-~]|\x1b\\][^\x07\x1b\r\n]*+(?:\x07|\x1b\\\\)?")
"""Terminal control sequences, which may split a secret."""

_REACH = 24
"""Earlier lines in which a wrapped secret may begin; only private keys are longer."""
_KEY = compile_later(rb"PRIVATE KEY|Private-Lines: ")
_SPELLED = compile_later(rb"\x1b\[[0-?]*+[ -/]*+[@-~]")
_UNSHOWN = bytes(byte for byte in range(256) if byte not in b"\t\n" and not ord(" ") <= byte <= ord("~"))
"""Invisible bytes, which may split the words of ``_KEY``."""
_SHORT = 80
"""Longest text, in characters, whose masking is cached: receipts repeat names, units and ids."""
_NUMBERS = frozenset({int, float, bool, type(None)})
_DEEPEST = 100
"""Deepest level of a document that is read; the contract needs about ten."""


def clean(text: str) -> str:
    """Remove control characters and bidirectional overrides from ``text``; the result is valid UTF-8."""
    if text.isascii() and text.isprintable():
        return text
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    return _CONTROL.sub("", text.replace("\t", " "))


def _bare(text: str) -> str:
    """Return ``text`` clean, with secrets masked first if a control sequence might consume a letter of one."""
    return clean(mask_secrets(text) if "\x1b" in text else text)


def safe_text(text: str, limit: int = MAX_EXCERPT) -> str:
    """Return ``text`` clean, masked and at most ``limit`` characters long."""
    return cut_text(mask_secrets(_bare(text)).strip(), limit)


def safe_names(names: Iterable[str]) -> list[str]:
    """Return distinct ``names`` clean and masked; names that become equal get a number: ``x_2``."""
    taken: dict[str, None] = {}
    for name in names:
        shown = unique = mask_secrets(_bare(name))
        number = 2
        while unique in taken:
            number, unique = number + 1, f"{shown}_{number}"
        taken[unique] = None
    return list(taken)


def mask_texts(value: Any, name: str = "", depth: int = 0) -> Any:
    """Return JSON-like ``value`` with all its texts clean and masked; keys are only masked.

    ``name`` is the key of ``value``: any value of ``api_key`` is a secret. Values below a hundred levels become null.
    """
    if isinstance(value, str):
        return _masked_short(name, value) if len(value) <= _SHORT else mask_field(name, _bare(value))
    if depth > _DEEPEST:
        return None if isinstance(value, dict | list) else value
    if isinstance(value, dict):
        return {
            _masked_key(key): item
            if type(item) in _NUMBERS
            else _masked_short(key, item)
            if type(item) is str and len(item) <= _SHORT
            else mask_texts(item, key, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [mask_texts(item, name, depth + 1) for item in value]
    return value


_masked_key = lru_cache(maxsize=8192)(mask_secrets)


@lru_cache(maxsize=8192)
def _masked_short(name: str, value: str) -> str:
    return mask_field(name, _bare(value))


def log_tail(raw: bytes, *, cut: bool = False) -> list[str]:
    """Return the last lines of a log from its last bytes: at most 50 lines and 8 KiB, clean and masked.

    ``cut``: the log is longer than ``raw``; the beginning of ``raw`` is dropped, because it may be inside a secret.
    """
    if cut:
        raw = _CUT.sub(b"", raw, count=1)
    raw = raw.rstrip(b"\r\n\t ")
    near = _last_lines(raw, TAIL_LINES + _REACH)
    lines = _masked_lines(near)
    if len(near) < len(raw) and (len(lines) < TAIL_LINES + _REACH or _KEY.search(_spelled(raw)) is not None):
        lines = _masked_lines(raw)
    kept: list[str] = []
    size = 0
    for line in reversed(lines[-TAIL_LINES:]):
        line = cut_text(line, 2000)
        size += len(line.encode()) + 1
        if size > TAIL_BYTES:
            break
        kept.append(line)
    return kept[::-1] if any(kept) else []


def _spelled(raw: bytes) -> bytes:
    """Return the visible characters of ``raw``."""
    return (_SPELLED.sub(b"", raw) if b"\x1b" in raw else raw).translate(None, _UNSHOWN)


def _last_lines(raw: bytes, count: int) -> bytes:
    at = len(raw)
    for _ in range(count):
        at = raw.rfind(b"\n", 0, at)
        if at < 0:
            return raw
    return raw[at + 1 :]


def _masked_lines(raw: bytes) -> list[str]:
    if b"\x1b" in raw:
        raw = mask_secrets(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return mask_secrets("\n".join(clean(line) for line in display_lines(raw, len(raw) + 1))).split("\n")
