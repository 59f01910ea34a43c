"""Text of a log → text that a receipt may hold: valid UTF-8, no control sequences, no secrets, bounded."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from receipt_cli.model import MAX_EXCERPT, TAIL_BYTES, TAIL_LINES
from receipt_cli.records import display_lines

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_MASK = "[redacted:{}]"
_NAMES = r"""(?:api[_-]?key|secret[_-]?access[_-]?key|secret[_-]?key|access[_-]?key|account[_-]?key|client[_-]?secret
    |(?:api|access|auth|session|refresh|hub|hf|github|gitlab)[_-]?token|password|passwd|pwd)"""
_VALUE = r"""["']?(?P<secret>(?<=")[^"\n]{6,256}(?=")|(?<=')[^'\n]{6,256}(?=')|[^\s"'&,;)}\]<]{6,})"""
_SECRETS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private-key",
        re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[\s\S]{0,8192}?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)"),
    ),
    ("hf", re.compile(r"\bhf_[A-Za-z0-9]{16,}")),
    ("sk", re.compile(r"\bsk-[A-Za-z0-9_-]{16,}")),
    ("github", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})")),
    ("gitlab", re.compile(r"\bglpat-[A-Za-z0-9_-]{16,}")),
    ("slack", re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}")),
    ("aws", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("google", re.compile(r"\b(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,})")),
    ("jwt", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}")),
    ("nvidia", re.compile(r"\bnvapi-[A-Za-z0-9_-]{20,}")),
    ("wandb", re.compile(r"\bwandb_v1_[A-Za-z0-9_-]{16,}")),
    ("bearer", re.compile(r"(?i)\bbearer[ ]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{8,})")),
    ("basic", re.compile(r"""(?i)\bauthorization["']?[ ]{0,4}:[ ]{0,4}["']?(?:basic|token)[ ]{1,4}(?P<secret>[^\s"',;[]{8,})""")),
    ("url-password", re.compile(r"(?<=://)[^\s/:@]{0,128}:[^\s/]{1,256}(?=@)")),  # an @ may be part of the password
    (
        "named",
        re.compile(
            rf"""(?ix)(?<![A-Za-z0-9])(?:(?:api|access|secret|private|auth|account|session|wandb|hf|hub|aws)[_-]?)*
            {_NAMES}["']?[ ]{{0,4}}[:=][ ]{{0,4}}{_VALUE}"""
        ),
    ),
    ("named", re.compile(rf"""(?ix)(?<!\S)--[\w-]{{0,40}}?{_NAMES}[ ]{{1,4}}["']?(?P<secret>[^\s"'-][^\s"']{{5,}})""")),  # a flag
)  # fmt: skip
_CUT = re.compile(rb"\A(?:[^\n]{0,4096}\n|[\s\S]{0,1024}\S*)")
"""What a secret may have been cut in: the first line, or of an endless one its first words."""
_WANDB = re.compile(r"(?i)wandb[^\n]{0,400}")
_WANDB_KEY = re.compile(r"(?i)\b[0-9a-f]{40}\b")


def mask_secrets(text: str) -> str:
    """Return ``text`` with every known kind of secret replaced by ``[redacted:kind]``."""
    for kind, pattern in _SECRETS:
        text = pattern.sub(partial(_mask_secret, kind) if "secret" in pattern.groupindex else _MASK.format(kind), text)
    return _WANDB.sub(lambda found: _WANDB_KEY.sub(_MASK.format("wandb"), found.group()), text)


def _mask_secret(kind: str, found: re.Match[str]) -> str:
    """Return the match with its group ``secret`` masked; what stands before it is kept."""
    secret = found.group("secret")
    if secret.lower() in ("none", "null", "true", "false") or secret.startswith("[redacted"):
        return found.group()
    start = found.start("secret") - found.start()
    return found.group()[:start] + _MASK.format(kind)


def clean(text: str) -> str:
    """Return ``text`` without control characters and bidirectional overrides, valid as UTF-8."""
    return _CONTROL.sub("", text.replace("\t", " "))


def safe_text(text: str, limit: int = MAX_EXCERPT) -> str:
    """Return ``text`` clean, masked and at most ``limit`` characters long."""
    return mask_secrets(clean(text)).strip()[:limit]


def mask_texts(value: Any) -> Any:
    """Return JSON-like ``value`` with every text in it clean and masked, at any depth; keys stay as they are."""
    if isinstance(value, str):
        return mask_secrets(clean(value))
    if isinstance(value, dict):
        return {key: mask_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mask_texts(item) for item in value]
    return value


def log_tail(raw: bytes, *, cut: bool = False) -> list[str]:
    """Return the last lines of a log from its last bytes: at most 50 lines and 8 KiB, clean and masked.

    ``cut``: the log is longer than ``raw``, which may begin inside a secret; nothing of what could be one is returned.
    """
    if cut:
        raw = _CUT.sub(b"", raw, count=1)
    lines = mask_secrets("\n".join(clean(line) for line in display_lines(raw, len(raw) + 1))).split("\n")
    kept: list[str] = []
    size = 0
    for line in reversed(lines[-TAIL_LINES:]):
        line = line[:2000]
        size += len(line.encode()) + 1
        if size > TAIL_BYTES:
            break
        kept.append(line)
    return kept[::-1] if any(kept) else []
