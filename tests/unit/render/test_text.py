import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from receipt_cli.render.console import elide, elide_middle, elide_start
from receipt_cli.render.text import CLEAN_LIMIT, clean

CLEANED = [
    ("größe 日本 ✓", "größe 日本 ✓"),
    ("a\nb\tc\rd", r"a\nb\tc\rd"),
    ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
    ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
    ("\x9b31m", r"\x9b31m"),  # CSI in one character
    ("\x00\x7f", r"\x00\x7f"),
    ("abc\u202edef", r"abc\u202edef"),  # right-to-left override
    ("a\u200bb\ufeff", r"a\u200bb\ufeff"),  # zero width
    ("\ud800", r"\ud800"),
    ("\U000e0041", r"\U000e0041"),  # tag character
    ("e\u0301", "e\u0301"),
    ("e\u0301\u0302\u0303", "e\u0301\u0302\\u0303"),  # a third mark would reach into the next line
    ("\u0301e", "\\u0301e"),  # would sit on the cell before
    ("♥\ufe0f", "♥"),
]


@pytest.mark.parametrize(("text", "want"), CLEANED)
def test_clean(text: str, want: str) -> None:
    assert clean(text) == want


def test_clean_to_ascii() -> None:
    assert clean("größe 日 ✓", unicode=False) == r"gr\xf6\xdfe \u65e5 \u2713"


def test_clean_cuts_what_no_line_shows() -> None:
    assert clean("x" * 10**6) == "x" * (CLEAN_LIMIT - 1) + "…"


@given(st.text(st.characters()), st.booleans())
def test_clean_is_safe_and_idempotent(text: str, unicode: bool) -> None:
    found = clean(text, unicode=unicode)
    assert clean(found, unicode=unicode) == found
    assert not {unicodedata.category(char) for char in found} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert unicode or found.isascii()
    found.encode()


@pytest.mark.parametrize(
    ("text", "width", "want"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),  # half a character is none
        ("ab", 1, "…"),
        ("ab", 0, ""),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
    ],
)
def test_elide(text: str, width: int, want: str) -> None:
    assert elide(text, width) == want


@pytest.mark.parametrize(
    ("text", "width", "middle", "start"),
    [
        ("abcdef", 6, "abcdef", "abcdef"),
        ("abcdef", 5, "a…def", "…cdef"),
        ("abcdef", 1, "…", "…"),
        ("日本語日本語", 7, "日…本語", "…日本語"),
        ("xxe\u0301yy", 4, "x…yy", "…e\u0301yy"),
        ("xe\u0301yy", 3, "…yy", "…yy"),
    ],
)
def test_elide_elsewhere(text: str, width: int, middle: str, start: str) -> None:
    assert (elide_middle(text, width), elide_start(text, width)) == (middle, start)


@given(st.text(), st.integers(1, 30))
def test_what_is_cut_keeps_to_the_width(text: str, width: int) -> None:
    safe = clean(text)
    for shorten in (elide, elide_middle, elide_start):
        assert cell_len(shorten(safe, width)) <= width
