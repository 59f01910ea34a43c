"""Mask the secrets in a text, and count the masks of each class in a document."""

from __future__ import annotations

import marshal
import re
from binascii import a2b_base64
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from receipt_cli.patterns import compile_later
from receipt_cli.redaction import places
from receipt_cli.redaction.forms import FORM_LEADS, FORMS, Leads
from receipt_cli.redaction.wrapped import mask_keys, mask_wrapped

MASKED = compile_later(r"\[redacted:([a-z][a-z0-9-]{0,31})\]")
"""A mask with its class."""
_MASK_BEGINS = "[redacted:"
_MASKED_ALREADY = compile_later(r"(?:[\w-]{1,32} |\\{0,3}[\"'`])?\[redacted:")
_SHORT, _LINE = 80, 2048
"""Longest name and longest line, in characters, whose masking is cached."""
_LONGEST_MASK = 48
_VERSION = compile_later(r"v?\d+(?:\.\w+)+")
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_COOKIE_NAME = compile_later(r"(?i)(?:sessionid|session_cookie|connect\.sid|csrftoken)[^A-Za-z]*\Z")
_NAME_BEFORE = compile_later(r"[\w-]*\Z")
IsSecret = Callable[[str, str], bool]
"""(text before a value, the value) → whether the value is a secret."""


def mask_secrets(text: str) -> str:
    """Replace every secret of a known class in ``text`` by ``[redacted:CLASS]``; idempotent."""
    if len(text) < 8:
        return text
    return _masked_short(text) if len(text) <= _SHORT else _masked_line(text) if len(text) <= _LINE else _masked_text(text)


def _masked_text(text: str) -> str:
    if "\n" in text:
        text = mask_wrapped(text, mask_secrets)
    text = mask_keys(text)
    if text.isidentifier():
        return _mask_forms(text)
    if "://" in text:
        text = places.URL.sub("[redacted:url-password]", text)
    lowered = _lower(text)
    for kind, lead, pattern in _FIRST:
        if lead in lowered:
            text, lowered = _masked(text, lowered, kind, pattern, _says_something)
    text = _mask_forms(text)
    lowered = _lower(text)
    numbers = _NAMED_LEADS.groups_in(lowered)
    while numbers:
        number = numbers.pop(0)
        kind, leads, pattern, is_secret = _NAMED[number]
        lines = _lines_with(leads, lowered) if pattern in _OF_A_LINE and "\n" in lowered else None
        before, (text, lowered) = lowered, _masked(text, lowered, kind, pattern, is_secret, lines)
        if lowered is not before:
            numbers = [other for other in _NAMED_LEADS.groups_in(lowered) if other > number]
    return _mask_wandb(text, lowered) if "wandb" in lowered or "biases" in lowered else text


def _mask_forms(text: str) -> str:
    numbers = FORM_LEADS.groups_in(text)
    while numbers:
        number = numbers.pop(0)
        masked = FORMS[number].pattern.sub(f"[redacted:{FORMS[number].kind}]", text)
        if masked != text:
            text = masked
            numbers = [other for other in FORM_LEADS.groups_in(text) if other > number]
    return _mask_encoded(text) if len(text) >= _LEAST_ENCODED else text


_masked_short = lru_cache(maxsize=8192)(_masked_text)
"""Cached because documents repeat short texts: names of fields and metrics, ids, digests."""
_masked_line = lru_cache(maxsize=256)(_masked_text)
"""Cached because a receipt and its row contain the same lines."""


def count_masks(*values: Any) -> dict[str, int]:
    """Count the masks of each class in JSON-like ``values``, in texts and keys; sorted by class."""
    found: Counter[str] = Counter()
    rest = [*values] if _may_contain_masks(values) else []
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            if _MASK_BEGINS in item:
                found.update(MASKED.findall(item))
        elif isinstance(item, dict):
            rest += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            rest += item
    return dict(sorted(found.items()))


def _may_contain_masks(values: Any) -> bool:
    """Return whether JSON-like ``values`` may contain a mask; ten times as fast as a look at each text."""
    try:
        return _MASK_BEGINS.encode() in marshal.dumps(values, 2)
    except ValueError:  # not plain JSON, or nested too deeply
        return True


def cut_text(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of masked ``text``; drop a mask that would be cut."""
    if len(text) <= limit:
        return text
    at = text.rfind("[redacted:", max(0, limit - _LONGEST_MASK), limit + len("redacted:"))
    whole = MASKED.match(text, at) if at >= 0 else None
    return text[: at if whole is not None and at < limit < whole.end() else limit]


def mask_field(name: str, value: str) -> str:
    """Return the masked value of a field; masked as a whole if the field's name marks a secret."""
    masked = mask_secrets(value)
    if MASKED.fullmatch(masked) is not None or not places.is_secret_name(name):
        return masked
    if len(value) < 4 or places.says_nothing(value) or _VERSION.fullmatch(value) is not None:
        return masked  # a package may have such a name
    return "[redacted:named]"


def _lower(text: str) -> str:
    """Return ``text`` in lower case with the same length: some letters outside ASCII become two in lower case."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)


def _lines_with(leads: Sequence[str], lowered: str) -> list[tuple[int, int]]:
    """Return the spans, including line ends, of the lines that contain one of ``leads``, in order."""
    spans: dict[int, int] = {}
    for lead in leads:
        at = lowered.find(lead)
        while at >= 0:
            end = lowered.find("\n", at) + 1 or len(lowered)
            spans[lowered.rfind("\n", 0, at) + 1] = end
            at = lowered.find(lead, end)
    return sorted(spans.items())


def _masked(
    text: str, lowered: str, kind: str, pattern: re.Pattern[str], is_secret: IsSecret,
    lines: Sequence[tuple[int, int]] | None = None,
) -> tuple[str, str]:  # fmt: skip
    """Mask the group ``secret`` of each match that ``is_secret`` accepts; return the text, and it in lower case.

    With ``lines``, only these spans are searched.
    """
    pieces: list[str] = []
    done = 0
    searched = [(0, len(lowered))] if lines is None else lines
    for found in (found for start, end in searched for found in pattern.finditer(lowered, start, end)):
        start, end = found.span("secret")
        secret = text[start:end]
        if _MASKED_ALREADY.match(secret) is None and is_secret(text[max(0, found.start() - 40) : start], secret):
            scheme = found.groupdict().get("scheme")
            pieces += [text[done:start], f"[redacted:{scheme if scheme in ('basic', 'bearer') else kind}]"]
            done = end
    if not pieces:
        return text, lowered
    text = "".join([*pieces, text[done:]])
    return text, _lower(text)


def _says_something(before: str, value: str) -> bool:
    return not places.says_nothing(value)


def _is_session(before: str, value: str) -> bool:
    """Return whether ``value`` is a session id: any value after a framework's own name (``sessionid``), else a random one."""
    return _COOKIE_NAME.search(before) is not None or places.looks_random("session", value.replace("-", "").lstrip("/.~"))


def _looks_random(before: str, value: str) -> bool:
    name = _NAME_BEFORE.search(before.rstrip(" \"'`:=>-|.\\"))
    return places.looks_random(name.group().lower() if name is not None else "", value)


def _mask_wandb(text: str, lowered: str) -> str:
    pieces: list[str] = []
    done = 0
    for line in places.WANDB.finditer(lowered):
        for found in places.WANDB_KEY.finditer(lowered, *line.span()):
            hashed = places.HASH_WORD.search(lowered, max(0, found.start() - 24), found.start())
            if hashed is None and places.KEY_WORD.search(lowered, line.start(), found.start()) is not None:
                pieces += [text[done : found.start()], "[redacted:wandb]"]
                done = found.end()
    return "".join([*pieces, text[done:]]) if pieces else text


_BASE64 = compile_later(
    r"(?:(?<![A-Za-z0-9+/_\\-])(?!(?<=%)[0-9A-F]{2})|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"
    r"[A-Za-z0-9+/_-]{20,4096}(?:={1,2}|(?![A-Za-z0-9+/_-]))"
)
_RUN = compile_later(r"[A-Za-z0-9+/_-]{20,}")
"""Contains every match of ``_BASE64``, but is found several times faster."""
_LEAST_ENCODED = 20
_TEXT = compile_later(rb"[\n\r\t -~]{8,}")


_MOST_SLASHES = 16
"""Most slashes tried as the beginning of base64, which may be part of a path and contain slashes itself."""


def _mask_encoded(text: str) -> str:
    """Mask base64 of a text with a secret, such as ``NAME=secret``, also inside a path."""
    pieces: list[str] = []
    done = 0
    for run in _RUN.finditer(text):
        for found in _BASE64.finditer(text, run.start(), run.end() + len("==")):
            pieces += [text[done : found.start()], _without_encoded(found.group())]
            done = found.end()
    return "".join([*pieces, text[done:]]) if pieces else text


@lru_cache(maxsize=1024)
def _without_encoded(word: str) -> str:
    """Mask the first base64 secret in a word. Cached because tracebacks repeat their paths."""
    starts = [0, *(at + 1 for at, letter in enumerate(word) if letter == "/")][:_MOST_SLASHES]
    for start in starts:
        for end in dict.fromkeys((len(word), word.find("/", start))):
            if end - start >= _LEAST_ENCODED and _is_encoded_secret(word[start:end].rstrip("=")):
                return f"{word[:start]}[redacted:base64]{word[end:]}"
    return word


def _is_encoded_secret(word: str) -> bool:
    if len(word) % 4 == 1:
        return False
    decoded = a2b_base64(word.replace("-", "+").replace("_", "/") + "=" * (-len(word) % 4))
    if _TEXT.fullmatch(decoded) is None:
        return False
    inner = decoded.decode("ascii")
    return mask_secrets(inner) != inner


_FIRST = (
    ("url-token", "=", places.QUERY),
    ("url-password", "%3a%2f%2f", places.URL_ESCAPED),
    ("authorization", "authorization", places.AUTHORIZATION),
)
_NAMED: tuple[tuple[str, tuple[str, ...], re.Pattern[str], IsSecret], ...] = (
    ("url-password", ("@",), places.BARE_URL, _says_something),
    ("bearer", ("bearer",), places.BEARER, _says_something),
    ("cookie", ("cookie",), places.COOKIE, _says_something),
    ("cookie", ("sessi", "sid", "csrf"), places.SESSION, _is_session),
    ("named", ("/pass", "/ pass"), places.PAIR, _says_something),
    ("named", ("auth",), places.AUTH, _says_something),
    ("named", places.SURE_LEADS, places.SURE, _says_something),
    ("named", ("pass",), places.PASS, places.looks_like_password),
    ("named", places.SURE_LEADS, places.SURE_FLAG, _says_something),
    ("named", places.LOOSE_LEADS, places.LOOSE, _looks_random),
    ("named", places.LOOSE_LEADS, places.LOOSE_FLAG, _looks_random),
    ("named", places.LOOSE_LEADS, places.SPOKEN, _looks_random),
    ("named", places.LEADS, places.QUOTED, places.is_quoted_password),
    ("named", places.LEADS, places.SAID, places.is_said_password),
    ("named", places.LEADS, places.SAID_LAST, places.is_quoted_password),
    ("named", ("password",), places.NETRC, _says_something),
    ("command", ("sshpass", "curl", "docker login", "wandb login", "mysql"), places.COMMAND, _says_something),
)
"""Class, texts of which each matching line contains one, pattern, and test of the value; by priority."""
_NAMED_LEADS = Leads([leads for _, leads, _, _ in _NAMED])
_OF_A_LINE = (
    places.SURE, places.PASS, places.SURE_FLAG, places.LOOSE, places.LOOSE_FLAG, places.SPOKEN,
    places.QUOTED, places.SAID, places.SAID_LAST,
)  # fmt: skip
"""Patterns that match within one line without looking at others."""
