"""Wherever a secret stands in a log's end, it does not stand in the tail, and the tail is bounded text."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.redaction.text import log_tail, safe_text
from tests.tools.timed import takes_less

LETTERS = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"  # made up
HEX = "0123456789abcdef0123456789abcdef01234567"
PLANTED = [
    ("", "hf_" + LETTERS),
    ("", "sk-" + LETTERS),
    ("", "ghp_" + LETTERS + "abcd"),
    ("", "AKIAABCDEFGHIJ234567"),
    ("", "AIza" + LETTERS + "abc"),
    ("Bearer ", LETTERS),
    ("wandb: ", HEX),
    ("wandb: ", "wandb_v1_" + LETTERS),
    ("AWS_SECRET_ACCESS_KEY=", LETTERS + LETTERS[:8]),
    ("https://me:", LETTERS),
]
words = st.text(st.characters(codec="utf-8", exclude_characters="\n\r@"), max_size=30)
breaks = st.sampled_from([" ", "\n", "\r", "\t", "\x1b[31m ", " | ", "\r\n", " \x00"])


@settings(max_examples=150)
@given(st.sampled_from(PLANTED), st.lists(st.tuples(words, breaks), max_size=12), st.lists(st.tuples(breaks, words), max_size=12))
def test_a_planted_secret_never_shows(
    planted: tuple[str, str], before: list[tuple[str, str]], after: list[tuple[str, str]]
) -> None:
    head, secret = planted
    assume(secret not in "".join(word for word, _ in before) + "".join(word for _, word in after))
    end = "@example.org" if "://" in head else ""
    text = "".join(w + b for w, b in before) + " " + head + secret + end + " " + "".join(b + w for b, w in after)
    tail = log_tail(text.encode())
    assert secret not in "\n".join(tail)
    assert secret not in safe_text(text.replace("\n", " ").replace("\r", " "))
    assert len(tail) <= 50 and sum(len(line.encode()) + 1 for line in tail) <= 8192
    assert not any(ord(c) < 32 for line in tail for c in line)


@given(st.lists(st.sampled_from([*PLANTED, ("", "plain"), ("", "=")]), max_size=8), st.sampled_from([" ", "\n", "'", ", "]))
def test_masking_is_done_once(parts: list[tuple[str, str]], between: str) -> None:
    once = mask_secrets(between.join(head + secret for head, secret in parts))
    assert mask_secrets(once) == once


LEADS = [
    "hf_", "sk-", "github_pat_", "AKIA", "eyJ", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "MII", "://a:",
    "&token=",
    "authorization: digest ", "cookie={", "password='", 'password="a\\"', "api_key=[", "--api-key ", "token=", "curl -u ",
    "mysql ", "wandb ", "%3a%2f%2f", "a:b1@", "password ....", "\nhf_ab1", "[redacted:",
]  # fmt: skip


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("rest", ["", "a1", "aB1+/", "- ", "a.b", "a\n"])
def test_a_text_made_to_be_slow_takes_time_in_proportion(lead: str, rest: str) -> None:
    """What is masked at once is 32 KiB at most: the end of a log."""
    for text in ((lead + rest) * (32_768 // len(lead + rest)), lead + (rest or "x") * (32_768 // len(rest or "x"))):
        assert takes_less(5, mask_secrets, text)
